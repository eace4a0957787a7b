"""One person's tombstone against an anchor: every damage is found, and nothing else is refused."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains import anchor, chain, sealed, stream
from memory import Anchor, InvalidInputError, fingerprint, tombstones
from memory.proofs import Proof, prove

TENANT, OTHER = "acmé", "globex"
ANN = fingerprint.subject_hash(TENANT, "ann", b"pepper")
BOB = fingerprint.subject_hash(TENANT, "bob", b"pepper")
CHAINS = {TENANT: chain(TENANT, [ANN, BOB, ANN, BOB]), OTHER: chain(OTHER, ["1" * 64] * 3)}
STONES = CHAINS[TENANT]
PART = [tombstones.line(stone) for stone in STONES]
ANCHOR = anchor(STONES[3])
FORMS = {"a stream": stream(CHAINS), "a chain": PART}


def refused(lines: list, kept: Anchor = ANCHOR) -> str:
    with pytest.raises(InvalidInputError) as caught:
        prove(lines, anchor=kept)
    assert caught.value.__context__ is None
    shown = "".join(traceback.format_exception(caught.value))
    for value in ("acm", "globex", ANN[:16], "secret"):
        assert value not in str(caught.value), shown
    return caught.value.rule


@pytest.mark.parametrize("form", FORMS)
def test_an_anchor_vouches_for_a_persons_tombstones_up_to_it(form: str) -> None:
    lines = FORMS[form]
    proof = prove(lines, anchor=ANCHOR, subject_hash=ANN)
    assert proof == Proof(tombstones=(STONES[0], STONES[2]), whole=True, beyond=0)
    proof = prove(lines, anchor=anchor(STONES[1]), subject_hash=ANN)
    assert (proof.tombstones, proof.beyond) == ((STONES[0],), 1)
    one = prove([line.encode() for line in lines], anchor=ANCHOR, erasure_id=UUID(int=2))
    assert one.tombstones == (STONES[1],)
    assert prove(lines, anchor=ANCHOR).tombstones == tuple(STONES)
    assert ANN not in repr(proof)


def test_a_part_of_a_chain_will_do_and_says_that_it_is_one() -> None:
    proof = prove(PART[2:], anchor=ANCHOR, subject_hash=ANN)
    assert (proof.tombstones, proof.whole) == ((STONES[2],), False)
    own = prove(PART[2:3], anchor=anchor(STONES[2]))
    assert own.tombstones == (STONES[2],)


def test_another_tenants_chain_or_stream_is_not_taken_for_this_one() -> None:
    theirs = [tombstones.line(stone) for stone in CHAINS[OTHER]]
    assert refused(theirs) == "must pass through the anchor"
    assert refused(stream({OTHER: CHAINS[OTHER]})) == "must pass through the anchor"
    assert refused([*PART, *theirs]) == "must be the next of its chain"
    # In a stream of both, the other's of the same position and hash is not this one's.
    both = {TENANT: STONES, OTHER: chain(OTHER, [ANN, BOB, ANN, BOB])}
    proof = prove(stream(both), anchor=ANCHOR, subject_hash=ANN)
    assert {stone.tenant_key for stone in proof.tombstones} == {TENANT}


def test_under_another_pepper_there_is_nobody() -> None:
    other = fingerprint.subject_hash(TENANT, "ann", b"other")
    proof = prove(PART, anchor=ANCHOR, subject_hash=other)
    assert (proof.tombstones, proof.beyond) == ((), 0)
    assert prove(PART, anchor=ANCHOR, subject_hash=ANN).tombstones


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seq", [1, 2, 3, 4])
def test_one_that_was_removed_or_moved_is_missed(form: str, seq: int) -> None:
    lines = FORMS[form]
    at = next(n for n, line in enumerate(lines) if f'"seq":{seq},' in line)
    without = [line for number, line in enumerate(lines) if number != at]
    if form == "a chain" and seq == 1:
        # A part may begin anywhere; it then does not claim to be whole.
        assert not prove(without, anchor=ANCHOR).whole
    else:
        refused(without)
    swapped = lines[:]
    other = at + 1 if seq < 4 else at - 1
    swapped[at], swapped[other] = swapped[other], swapped[at]
    refused(swapped)
    refused([*lines[:at], lines[at], *lines[at:]])


def test_who_rewrites_the_chain_does_not_meet_the_anchor() -> None:
    forged = [sealed(STONES[0], memories=9)]
    for stone in STONES[1:]:
        forged.append(sealed(stone, previous=forged[-1].digest))
    lines = [tombstones.line(stone) for stone in forged]
    assert refused(lines) == "must pass through the anchor"
    assert prove(lines, anchor=anchor(forged[-1])).tombstones == tuple(forged)


def flipped(line: bytes) -> list[bytes]:
    return [
        line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]
        for at in range(len(line))
        for bit in range(8)
    ]


def test_no_single_bit_changes_what_is_believed() -> None:
    """Every bit of a tombstone, and of the lines around it in a stream.

    What is not refused says the same: the letter of a \\u00e9, of either case.
    """
    head, tombstone, *tail = stream({TENANT: STONES[:1]})
    damaged = [[line] for line in flipped(tombstone.encode())]
    damaged += [[line, tombstone, *tail] for line in flipped(head.encode())]
    for number, line in enumerate(tail):
        around = (tail[:number], tail[number + 1 :])
        damaged += [[head, tombstone, *around[0], x, *around[1]] for x in flipped(line.encode())]
    passed = 0
    for lines in damaged:
        try:
            proof = prove(lines, anchor=anchor(STONES[0]))
        except InvalidInputError:
            continue
        assert proof.tombstones == (STONES[0],)
        passed += 1
    assert len(damaged) > 5_000
    assert passed <= 2


LINE = PART[3]
HOSTILE: dict[str, str | bytes | int | None] = {
    "nested deep": "[" * 100_000,
    "nested deep in a field": LINE.replace('"seq":4', '"seq":' + "[" * 2_000 + "]" * 2_000),
    "longer than any": LINE[:-1] + " " * 10_000 + "}",
    "a number of many digits": LINE.replace('"seq":4', f'"seq":{"9" * 5_000}'),
    "a number too big": LINE.replace('"memories":4', f'"memories":{2**63}'),
    "NaN": LINE.replace('"memories":4', '"memories":NaN'),
    "Infinity": LINE.replace('"memories":4', '"memories":Infinity'),
    "a fraction": LINE.replace('"memories":4', '"memories":4.0'),
    "true": LINE.replace('"format":1', '"format":true'),
    "a key twice": LINE.replace('"memories":4', '"memories":9,"memories":4'),
    "an id of the other case": LINE.replace("00000004", "0000000A").replace("-0000-", "-000A-"),
    "a time with another zone": LINE.replace("16:00:00.000005+00:00", "17:00:00.000005+01:00"),
    "a time with a comma": LINE.replace(".000005", ",000005"),
    "two objects": LINE + LINE,
    "a list": "[1]",
    "not UTF-8": b"\xff\xfe",
    "a lone surrogate": LINE.replace("acm\\u00e9", "\\ud800"),
    "an object of another kind": '{"type":"secret"}',
    "an end": tombstones.footer(4),
    "nothing": None,
    "a number for a line": 5,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_lines_are_refused_without_a_value(name: str) -> None:
    assert HOSTILE[name] != LINE
    refused([*PART[:3], HOSTILE[name]])
    refused([HOSTILE[name], *PART])
    streamed = stream({TENANT: STONES})
    refused([*streamed[:4], HOSTILE[name], *streamed[5:]])


@settings(max_examples=40)
@given(st.lists(st.one_of(st.text(max_size=50), st.binary(max_size=50), st.sampled_from(PART))))
def test_whatever_is_read_is_refused_or_verified(lines: list) -> None:
    try:
        proof = prove(lines, anchor=ANCHOR)
    except InvalidInputError:
        return
    assert proof.tombstones
    assert set(proof.tombstones) <= set(STONES)


@pytest.mark.parametrize(
    ("field", "given_"),
    [
        ("anchor", {"anchor": None}),
        ("subject_hash", {"anchor": ANCHOR, "subject_hash": "secret"}),
        ("erasure_id", {"anchor": ANCHOR, "erasure_id": "secret"}),
    ],
)
def test_what_is_asked_for_is_checked(field: str, given_: dict) -> None:
    with pytest.raises(InvalidInputError) as caught:
        prove(PART, **given_)
    assert caught.value.field == field


@pytest.mark.parametrize("value", ["null", "0", "false", "[]", "{}"])
def test_only_the_empty_string_stands_before_the_first(value: str) -> None:
    first = tombstones.line(STONES[0])
    assert prove([first], anchor=anchor(STONES[0])).whole
    lines = [first.replace('"previous":""', f'"previous":{value}')]
    assert lines != [first]
    with pytest.raises(InvalidInputError, match="must have hashes"):
        prove(lines, anchor=anchor(STONES[0]))


def test_what_holds_no_lines_is_refused() -> None:
    async def exported() -> AsyncIterator[str]:
        yield PART[0]

    reading: list[Callable[[Any], object]] = [
        tombstones.verify,
        lambda lines: prove(lines, anchor=ANCHOR),
    ]
    for lines in (exported(), 5, None):
        for read in reading:
            with pytest.raises(InvalidInputError, match="tombstones: must be lines"):
                read(lines)
    assert prove(iter(PART), anchor=ANCHOR).tombstones
