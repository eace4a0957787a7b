"""Where the rules for numbers end: how many digits, how grouped, how far a word reaches."""

from __future__ import annotations

import pytest

from marked import misread
from memory.redaction import backwards, default_redactor

# What is to be masked stands in braces; a text without them is to stay as it is.
EDGES = {
    "aadhaar": """
        {234123 412346}
        {2341 23412346}
        {23412341 2346}
        23412 3412346
        {234 123 412 346}
        234 123 412 34 6
        upi 234123412346
        customer id 23 41 23 41 23 46
        {2341 2341 2346} {2341 2341 2346}
        1234 2341 2341 2346
        2341 2341 2346 2341 2341 2346 2341
        {9167 8901 2347}
        2000 1900 1903
        2000 1909 2099
        {2000 1899 1900}
        {2000 1908 2100}
        aadhaar {2000 1900 1903}
        upi 2341 2341 2346
        aadhaar{234123412346}
    """,
    "virtual_id": """
        {9876 5432 1098 7659}
        {98765432 10987659}
        987654321 0987659
        card 9876543210987659
        aadhaar {987 654 321 098 765 9}
    """,
    "card": """
        {3782 822463 10005}
        {378282246310005}
        4111-111111-11111
        4111 1111 111 1111
        {411111 1111111111}
        {3056 930902 5904}
        {622126 0000000000001}
        3782 8224 631 0005
        378 2822 4631 0005
        {4111 1111 1111 1111} {4111 1111 1111 1111}
        4111 1111 1111 1111 4111 1111 1111 1111 4111
        aadhaar 4111111111111111
        card {4222222222222}
        4222222222222
        cards 4111 1111 1111 1112
        order 4111 1111 1111 1111
    """,
    "bank_account": """
        account 12345678
        account {123456789}
        account {123456789012345678}
        account 1234567890123456789
        account {9876543210}
        account {4111111111111111}
        account {2000 1908 2100}
        account red blue green grey {50100012345678}
        account red blue green grey pink 50100012345678
        account {501 0001 23456}
        account 50 1000 123456
        {50100012345678} ifsc
        savings bank {50100012345678}
        {50100012345678} (account)
        {50100012345678} is the red account
        {50100012345678} account number
        {50100012345678} red account number
        50100012345678 red blue account number
        50100012345678 and the red account
        50100012345678. is my account number
        ACCT-{50100012345678}
    """,
    "phone_in": """
        id 9876543210
        id {98765 43210}
        account of Ravi {9876543210}
        {0 98765 43210}
        {91 98765 43210}
        {+91 98765 43210}
        {+091 98765 43210}
        +0 {98765 43210}
        {0091 98765 43210}
        92 {98765 43210}
        0.98765 43210
        {(98765) 43210}
        5999999999
        {6000000000}
        passport 6000000000
        pan 6000000000
        aadhaar 6000000000
        98 765 43210
        {987 654 3210}
        {987 6543 210}
        {9876 543 210}
        {9876 543210}
        {987654 3210}
        {98 7654 3210}
        {987 6543210}
        98765    43210
        {98765   43210}
        98765. 43210
        98765\\n\\n43210
        {98\\n76543210}
        phone {02224567890}
        phone red blue {02224567890}
        phone red blue green 02224567890
        02224567890
        phone {+91 22 24567890}
        {9876543210}pe
        9876543210pen
        9876543210:5
        {9876543210}: five
        9876543210_5
        9876543210.5
        {9876543210}.
        1/9876543210
        123456/9876543210
        {9123456780}/{9876543210}
        AB-9876543210
        ABCDEF-{9876543210}
        Ab-{9876543210}
        X9876543210
        call{9876543210}
        order Ravi {9876543210}
        order: Ravi {9876543210}
        order: ravi 9876543210
        amount, {9876543210}
        customer number 9876543210
        customer number red {9876543210}
        customer number my\\n{9876543210}
        call my\\n{02224567890}
        order:\\n9876543210
        order\\n{9876543210}
        order:\\n\\n{9876543210}
        invoice number\\n9876543210
        invoice number my\\n{9876543210}
        a1b-9876543210
        abc_9876543210
        abc#9876543210
        upi {9 8 7 6 5 4 3 2 1 0}
        9 8 7 6 5 4 3 2 1 0
        order red 9876543210
        order red blue {9876543210}
        9876543210 +1
        9876543210%
        9876543210 kg
        9876543210  units
        {9876543210} and five kg
        {9876543210} Order five
        order 55, {9876543210}
        orders 9876543211, 9876543210
        orders 987, {9876543210}
        #9876543210
        order: {+91 98765 43210}
        orders 9876543211, 9876543212, 9876543210
        amount 9876543210
        amount red {9876543210}
        order at {9876543210}
        phone {9876543210} kg
        phone red 9876543210 kg
        phone red 9876543210                      kg
        phone red {9876543210}                       kg
        {00919876543210}
        myOrder 9876543210
        ORDERS 9876543210
        OrdeR {9876543210}
        \u0130 phone {9876543210}
        https://x.example/me/{9876543210}
        https://x.example/abc/9876543210
        see https://a.example/p/9876543210
        https://wa.me/{9876543210}
        a/{9876543210}
        a/b/9876543210
        see www.a/9876543210
        "a/b/"/{9876543210}
        id of the order 9876543210
        no order id red 9876543210
        order red id 9876543210
        red,phone,blue\\n987,{02224567890},5
        red,phone,blue\\n1,2,3\\n987,{02224567890},5
        red,phone,blue\\n1,2\\n987,02224567890,5
        phone,red,blue\\n987,02224567890,5
        red;phone\\n987;{02224567890}
        red|phone\\n987|{02224567890}
    """,
    "phone": """
        {1-408-586-9001}
        2-408-586-9001
        call 408586900112
        408 586 9001
        {408.586.9001}
        {(408) 586-9001}
        408-186-9001
        108-586-9001
        call {4085869001}
        call red blue green {4085869001}
        call red blue green grey 4085869001
        order 408-586-9001
        {+4420794609}
        +442079460
        {+372 555 123}
        +372 555 12
        {+33 1 23 45 67 89}
        +33 1 2 3 4567 89
        {+123456789012345}
        +1234567890123456
        {+(44) 20 7946 0958}
        {+ 44 20 7946 0958}
    """,
    "ssn": """
        000-05-1120
        900-05-1120
        {899-05-1120}
        078-00-1120
        078-05-0000
        ssn {078051120}
        ssn {078 05 1120}
        078 05 1120
        078-05 1120
        order 078-05-1120
        +078-05-1120
    """,
}


@pytest.mark.parametrize("kind", EDGES)
def test_a_rule_ends_where_it_says(kind: str) -> None:
    assert not misread(kind, EDGES[kind])


@pytest.mark.parametrize(
    ("words", "read", "kept"),
    [
        ("xyz,order", "z,order", True),
        ("xyz,order", "order", True),
        ("xyz,order", "rder", False),
        ("xyz order", "z order", True),
    ],
)
def test_where_the_reach_cuts_a_word_the_rest_of_it_is_read(words: str, read: str, kept: bool):
    text = f"{words}{' ' * (backwards.REACH - len(read))}9876543210"
    masked, _ = default_redactor.redact(text)
    assert ("9876543210" in masked) == kept
