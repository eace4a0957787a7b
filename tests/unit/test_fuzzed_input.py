"""Whatever is given to what parses: an answer, or an error of the library that quotes none of it.

``MEMORY_FUZZ=20000 pytest tests/unit/test_fuzzed_input.py`` tries as many of each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chains
from memory import InvalidInputError, redaction, tombstones, validation
from memory.cli.files import anchor_of, read_anchors
from memory.maintenance.compressed import unpack_all
from memory.metadata import MAX_BYTES, MAX_DEPTH, contains, metadata
from memory.service.items import checked, item_of
from memory.tokens import terms
from memory.urls import normalize_url
from memory.vectors import vector

EXAMPLES = settings(max_examples=int(os.environ.get("MEMORY_FUZZ", "40")), deadline=None)
# No sentence of the library has it: whatever is given has it, and no error may.
MARK = "zqxj"
TEXTS = st.text().map(lambda text: MARK + text)
NUMBERS = st.one_of(
    st.integers(), st.floats(), st.complex_numbers(), st.decimals(), st.just(10**4_000)
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, TEXTS, st.datetimes(), st.uuids(), st.builds(object),
    st.binary().map(lambda value: MARK.encode() + value),
)  # fmt: skip
ANY = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(TEXTS | st.integers(), inner)
    ),
    max_leaves=20,
)
CHECKS = [
    validation.tenant, validation.text, validation.kind, validation.kinds, validation.origins,
    validation.subject_keys, validation.reason, validation.strategy, validation.subject_match,
    validation.min_score, validation.neighbours, validation.limit, validation.anchors,
    validation.below, validation.record_id, validation.sources, validation.artefacts,
    validation.closure, validation.pepper, vector, metadata, normalize_url,
]  # fmt: skip


def quotes_nothing(call: Callable[..., Any], *given: object) -> Any:
    """The answer, or None where the input was refused without a word of it."""
    try:
        return call(*given)
    except InvalidInputError as caught:
        error = caught
    said = f"{error} {error!r} {error.field} {error.__cause__} {error.__context__}"
    assert MARK not in said
    return None


@EXAMPLES
@given(ANY)
def test_every_check_takes_anything(value: object) -> None:
    for check in CHECKS:
        quotes_nothing(check, value)
    for field in ("record_key", "adapter"):
        quotes_nothing(validation.key, value, field)
    for check in (validation.flag, validation.duration, validation.moment):
        quotes_nothing(check, value, "field")
    quotes_nothing(validation.period, value, value)


ITEMS = st.fixed_dictionaries(
    {"text": TEXTS | ANY, "subject_keys": TEXTS | ANY},
    optional={
        name: ANY
        for name in ("kind", "metadata", "record_key", "occurred_at", "expires_at", "embedding")
    },
)


@EXAMPLES
@given(ITEMS)
def test_an_item_is_checked_whatever_is_in_it(item: dict[str, Any]) -> None:
    quotes_nothing(lambda: checked(item_of(item, "items.0")))


@EXAMPLES
@given(st.dictionaries(TEXTS, ANY), st.dictionaries(TEXTS, ANY))
def test_metadata_that_is_taken_is_json_and_contains_itself(left: Any, right: Any) -> None:
    found, asked = quotes_nothing(metadata, left), quotes_nothing(metadata, right)
    if found is not None:
        assert len(json.dumps(found, ensure_ascii=False).encode()) <= MAX_BYTES
        assert contains(found, found)
        if asked is not None and contains(found, asked) and contains(asked, found):
            assert asked.keys() == found.keys()


def test_what_unfolds_without_end_is_refused_at_once() -> None:
    """Depth, breadth, and references that double at each level."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    doubled: Any = "x"
    for _ in range(MAX_DEPTH - 2):
        doubled = [doubled, doubled]
    round_and_round: dict[str, Any] = {}
    round_and_round["a"] = round_and_round
    bombs = (deep, doubled, round_and_round, ["x"] * MAX_BYTES, {"a": "x" * MAX_BYTES})
    for bomb in bombs:
        with pytest.raises(InvalidInputError):
            metadata({"a": bomb})
    assert metadata({"a": [["x"]]}) == {"a": [["x"]]}
    while deep:  # taken apart by hand: the interpreter's own way down is as deep
        deep = deep.pop()


STONES = chains.chain(MARK, [f"{number:064x}" for number in range(3)])
STREAM = [line.encode() for line in chains.stream({MARK: STONES})]


@EXAMPLES
@given(st.data())
def test_a_stream_that_was_tampered_with_is_refused_or_the_same(data: Any) -> None:
    lines = list(STREAM)
    number = data.draw(st.integers(0, len(lines) - 1))
    line = lines[number]
    at = data.draw(st.integers(0, len(line)))
    cut = data.draw(st.integers(0, 8))
    lines[number] = line[:at] + data.draw(st.binary(max_size=8)) + line[at + cut :]
    found = quotes_nothing(tombstones.verify, lines)
    if found is not None:
        # White space and another way to write the same JSON change nothing.
        assert [json.loads(one) for one in lines if one.strip()] == list(map(json.loads, STREAM))
    assert tombstones.verify(STREAM).tombstones == 3


@EXAMPLES
@given(st.lists(st.binary() | TEXTS | ANY.map(lambda value: json.dumps(value, default=str))))
def test_lines_that_are_no_stream_are_refused(lines: list[str | bytes]) -> None:
    assert quotes_nothing(tombstones.verify, lines) is None


@EXAMPLES
@given(TEXTS | st.from_regex(r"[0-9]{1,25}:[0-9a-f]{60,66}", fullmatch=True))
def test_an_anchor_is_one_or_is_refused(given: str) -> None:
    quotes_nothing(anchor_of, given)


@EXAMPLES
@given(content=st.binary() | ANY.map(lambda value: json.dumps(value, default=str).encode()))
def test_a_file_of_anchors_is_read_or_refused(tmp_path_factory: Any, content: bytes) -> None:
    file = tmp_path_factory.mktemp("anchors") / "anchors.jsonl"
    file.write_bytes(content)
    quotes_nothing(read_anchors, file)


@EXAMPLES
@given(st.text() | st.from_regex(r"[a-z+]*://[^@]*@[^/]*/.*", fullmatch=True))
def test_a_url_is_one_or_is_refused_without_its_password(url: str) -> None:
    quotes_nothing(normalize_url, f"{url}{MARK}")


@EXAMPLES
@given(st.text(), st.integers(0, 3_000))
def test_words_and_identifiers_are_found_in_any_text_of_any_length(text: str, times: int) -> None:
    whole = text * times
    assert all(0 < len(term.encode()) <= 128 for term in terms(whole))
    masked = redaction.scan(whole[:20_000])
    assert all(0 <= found.start < found.end <= len(whole) for found in masked)


@EXAMPLES
@given(st.binary(max_size=4_096))
def test_what_looks_compressed_unpacks_to_no_more_than_it_says(content: bytes) -> None:
    for header in (b"\x50\x00\x00\x00\xff\xff\x03\x00", b"\x50\x00\x00\x00\xff\xff\x03\x40"):
        for unpacked in unpack_all(header + content + content):
            assert len(unpacked) <= 1 << 18
