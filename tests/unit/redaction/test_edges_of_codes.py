"""Where the rules for codes, addresses and secrets begin and end."""

from __future__ import annotations

import pytest

from marked import misread

# What is to be masked stands in braces; a text without them is to stay as it is.
EDGES = {
    "pan": """
        pan {ABCPK1234F}
        {ABCPK1234F}
        {abcpk1234f}
        AbcPK1234F
        {ABCPK-1234-F}
        ABCPK 1980 F
        ABCPK 2039 F and more
        {ABCPK 2040 F} and more
        {ABCPK 1979 F} and more
        ABCPK 1234 F
        ABCPK 1234 f, said
        ABCPK 1234-F, said
        {ABCPK 1234 F}, said
        {ABCPK 1234F}, said
        {ABCPK-1234F}
        ABCPK0000F
        27ABCPK1234F1Z6
        no 27-ABCPK1234F-1Z6
        no 7-{ABCPK1234F}-1Z6
        {ABCPK 1234 F} AND SO ON IN CAPITALS FOR FORTY XXXXXXs
        ABCPK 1234 F AND SO ON IN CAPITALS FOR FORTY XXXXXXXs
        sXXXXXX FOR FORTY AND SO ON IN CAPITALS {ABCPK 1234 F}
        sXXXXXXX FOR FORTY AND SO ON IN CAPITALS ABCPK 1234 F
        order ABCPK1234F
        INV-ABCPK1234F
    """,
    "gstin": """
        {27-AAPFU-0939-F-1ZV}
        {2 7 AAPFU 0939F 1Z V}
        27   AAPFU0939F1ZV
        A27AAPFU0939F1ZV
        27AAPFU0939F1ZVA
    """,
    "ifsc": """
        {HDFC0ABC123}
        HDFC0ABCD12
        ifsc {HDFC0ABCD12}
        {HDFC 0001234}
        HDFC   0001234
        {ABCD0123456}
        abcd0123456
        order ABCD0123456
        ifsc {abcd0123456}
        {ABCD0ABC456}
        ABCD0ABCD56
        ifsc {H-D-F-C-0-0-0-1-2-3-4}
        ifsc of the order H-D-F-C-0-0-0-1-2-3-4
    """,
    "passport": """
        passport red blue green grey {K1234567}
        passport red blue green grey pink K1234567
        passport {K 1234567}
        passport {AB123456}
        passport {AB12345678}
        passport AB123456789
        \u0130 passport {12345678}
        passport 1234567
    """,
    "voter_id": """
        voter {ABC 1234567}
        voter ABC123456
        voter card {ABC1234567}
        voter red blue green grey {ABC1234567}
        voter red blue green grey pink ABC1234567
    """,
    "iban": """
        {GB82WEST12345698765432}
        {NO9386011117947}
        X-GB82WEST12345698765432
        -{GB82WEST12345698765432}
        GB82WEST12345698765432A
        GB82WEST12345698765432A and more
        GB82 WEST 1234 5698 7654 3
        {GB82 WEST 1234 5698 7654 32} and more
        {GB82 WEST 1234 5698 7654 32}. And more
        XX82WEST12345698765432
    """,
    "email": """
        {a@b.co}
        a@b.c
        {ravi.k+x@a-b.example.com}
        .{ravi@example.com}
        git@example.com
        icon@2x.png
        {icon@2x.pngs}
        {ravi @ gmail.com}
        ravi @ example.com
        ravi @example.com
        ravi@ example.com
        email {ravi @ example.com}
        {ravi (at) example.com}
        {ravi [at] example [dot] com}
        {ravi at gmail dot com}
        ravi at example dot com
        {ravi5 at example dot com}
        email {ravi at example dot com}
    """,
    "upi": """
        {ra@ybl}
        r@ybl
        ravi@ybl-x
        ravi@ybl.5
        {ravi@ybl}.
        ravi @ ybl
        upi {ravi @ ybl}
        {98765 @ybl}
    """,
    "password": """
        my password is {correcthorse}            and more
        my password is correcthorse           and more
        password={abc}
        password=ab
        key=red password={hunter2}
        my password is ab1
        my password is {ab12}
        my password is app.name1
        my password is '{app.name1}'
        password={hunter2}.
        password="{hunter2.}"
        \u0130 password={hunter2}
        password: hunter comes
        password: {hunter}
        password: "{hunter}" comes
        pwd {Abc@123}
        pwd abc@
        my password is {hunter}.
        my password is hunter comes
        my password is cut.
        my password is changed.
        my password for the red is {hunter2}
        my password for the red blue green is hunter
        password is {a-b-5}
        password is a-bc
        password hunter-2
        password {hunter2}
        password ab1cd
        --password {hunter}
        -password hunter
        https://ravi:{hunter2}@example.com
        https://ravi:${hunter2
        password=$HUNTER
    """,
    "secret": """
        token={abcdefg1}
        token=abcdef1
        token=abcdefgh
        token={abcdefghijklmnop}
        token=abcdefghijklmno
        api_key={abcdefg1}
        key=abcdefg1
        secret {0123456789abcdef0123456789abcdef}
        secret 0123456789abcdef0123456789abcde
        secret {aB1cD2eF3gH4iJ5kL6mN7oP8}
        secret aB1cD2eF3gH4iJ5kL6mN7oP
        secret {abcdefghijkABClmnopqrs12}
        secret abcdefghijkABClmnopqrst1
        secret abcdefghijklmABnopqrst12
    """,
    "api_key": """
        https://hooks.slack.com/services/{T00000000/B00000000/XXXXXXXXXXXXXXXX}
    """,
    "bearer_token": """
        authorization: bearer {abcdef}
        authorization: bearer abcde
        authorization: abcdef
        authorization: {1abcdef}
        bearer {abcdefghijklmno1}
        bearer abcdefghijklmn1
        bearer abcdefghijklmnop
    """,
    "basic_auth": """
        authorization: basic {abcdef}
        basic {dXNlcjpwYXNz}
        basic dXNlcnBhc3Mx
    """,
}


@pytest.mark.parametrize("kind", EDGES)
def test_a_rule_ends_where_it_says(kind: str) -> None:
    assert not misread(kind, EDGES[kind])
