"""The stream of tombstones: what was edited, moved, left out or cut off is refused."""

from __future__ import annotations

import json
import traceback

import pytest

import chains
from chains import anchor, chain, sealed
from memory import Anchor, InvalidInputError, tombstones

HASHES = [f"{n:064x}" for n in range(1, 4)]
CHAINS = {"acmé": chain("acmé", HASHES), "globex": chain("globex", HASHES[:2])}
ENDS = {tenant: anchor(stones[-1]) for tenant, stones in CHAINS.items()}


def stream():
    return chains.stream(CHAINS)


def test_a_stream_gives_back_every_tombstone():
    assert list(tombstones.read(stream())) == [*CHAINS["acmé"], *CHAINS["globex"]]
    verified = tombstones.verify([f"{line}\n".encode() for line in stream()])
    assert (verified.tombstones, verified.anchors) == (5, ENDS)
    assert "acm" not in repr(verified)


def test_a_blank_line_ends_nothing_and_counts_for_nothing():
    lines = stream()
    spaced = ["", lines[0], "  \n", *lines[1:4], "", *lines[4:], ""]
    assert tombstones.verify(spaced, ENDS).tombstones == 5
    with pytest.raises(InvalidInputError, match=r"tombstones\.3"):
        list(tombstones.read([lines[0], "", lines[1], "", lines[3]]))


def test_a_long_chain_passes_through_its_anchor():
    long = {"acmé": chain("acmé", [HASHES[0]] * 300)}
    passed = {"acmé": anchor(long["acmé"][279])}
    assert tombstones.verify(chains.stream(long), passed).tombstones == 300
    with pytest.raises(InvalidInputError, match="anchor"):
        tombstones.verify(chains.stream(long), {"acmé": Anchor(seq=280, digest="0" * 64)})


def test_an_empty_installation_has_a_stream_too():
    lines = [tombstones.header(), tombstones.footer(0)]
    assert tombstones.verify(lines).tombstones == 0


def edited(number, **values):
    lines = stream()
    lines[number] = json.dumps({**json.loads(lines[number]), **values})
    return lines


def moved(first, second):
    lines = stream()
    lines[first], lines[second] = lines[second], lines[first]
    return lines


def without(*numbers):
    return [line for number, line in enumerate(stream()) if number not in numbers]


BROKEN = {
    "empty": [],
    "a count edited": edited(2, memories=9),
    "a time edited": edited(2, erased_at="2020-01-01T00:00:00+00:00"),
    "a time without its zone": edited(2, erased_at="2024-05-01T14:00:00"),
    "a person edited": edited(1, subject_hash="0" * 64),
    "a tenant edited": edited(2, tenant_key="globex"),
    "a tenant of no characters": edited(1, tenant_key=""),
    "a lone surrogate": edited(1, tenant_key="\ud800"),
    "a digest edited": edited(3, digest="0" * 64),
    "a field too many": edited(1, note="secret"),
    "a text for a number": edited(1, memories="1"),
    "true for a number": edited(1, memories=True),
    "a negative number": edited(1, memories=-1),
    "an unknown format": edited(1, format=2),
    "an unknown reason": edited(1, reason="secret"),
    "a list for a reason": edited(1, reason=["subject_request"]),
    "an id that is none": edited(1, erasure_id="secret"),
    "a hash that is none": edited(1, subject_hash="SECRET"),
    "another stream": edited(0, format="other"),
    "two moved": moved(1, 2),
    "the newest of two tenants exchanged": moved(3, 6),
    "heads exchanged": moved(4, 7),
    "the oldest left out": without(1),
    "one in the middle left out": without(2),
    "the newest left out": without(3),
    "a head left out": without(4),
    "a tenant left out": without(5, 6, 7),
    "cut short": without(8),
    "cut in a tenant": stream()[:3],
    "without its first line": without(0),
    "repeated": [*stream(), *stream()],
    "a tenant twice": [*stream()[:5], *stream()[1:]],
    "not JSON": [stream()[0], "secret"],
    "not an object": [stream()[0], "[1]"],
    "not text": [stream()[0], 5],
    "nothing": [None],
    "not UTF-8": [stream()[0].encode(), b"\xff\xfe"],
    "nested too deep": [stream()[0], "[" * 100_000],
    "of another kind": [stream()[0], '{"type":"secret"}'],
    "the end counted wrong": edited(8, tombstones=4),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_is_refused_without_a_value(name):
    with pytest.raises(InvalidInputError) as caught:
        tombstones.verify(BROKEN[name])
    shown = "".join(traceback.format_exception(caught.value, chain=True)).lower()
    assert str(caught.value).startswith("tombstones")
    message = str(caught.value)
    for value in ("secret", "acm", "globex", "0" * 20):
        assert value not in message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, shown


def test_an_anchor_finds_a_stream_that_was_rewritten_or_is_too_old():
    passed = {"acmé": Anchor(seq=2, digest=CHAINS["acmé"][1].digest)}
    assert tombstones.verify(stream(), passed).tombstones == 5
    assert tombstones.verify(stream(), ENDS).tombstones == 5
    for newer in (
        Anchor(seq=2, digest="0" * 64),
        Anchor(seq=4, digest=CHAINS["acmé"][1].digest),
    ):
        with pytest.raises(InvalidInputError, match="anchor"):
            tombstones.verify(stream(), {"acmé": newer})
    with pytest.raises(InvalidInputError, match="anchor"):
        tombstones.verify(stream(), {"initech": Anchor(seq=1, digest="0" * 64)})


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("elsewhere", ["0" * 64, "f" * 64], ids=["below", "above"])
def test_a_link_to_what_is_not_before_it_is_refused_though_all_digests_fit(position, elsewhere):
    stones = chain("acmé", HASHES)
    assert tombstones.verify(chains.stream({"acmé": stones})).tombstones == 3
    stones[position] = sealed(stones[position], previous=elsewhere)
    for behind in range(position + 1, 3):
        stones[behind] = sealed(stones[behind], previous=stones[behind - 1].digest)
    with pytest.raises(InvalidInputError, match=rf"tombstones\.{position + 2}.*continue its chain"):
        tombstones.verify(chains.stream({"acmé": stones}))


def test_who_rewrites_everything_is_found_by_an_anchor_only():
    rewritten = chain("acmé", HASHES[:2])
    lines = [
        tombstones.header(),
        *(tombstones.line(stone) for stone in rewritten),
        tombstones.head("acmé", Anchor(seq=2, digest=rewritten[-1].digest)),
        tombstones.footer(2),
    ]
    assert tombstones.verify(lines).tombstones == 2
    with pytest.raises(InvalidInputError, match="anchor"):
        tombstones.verify(lines, {"acmé": ENDS["acmé"]})
