"""Lines of versions: a retry is told from another memory, a batch's own versions count on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from memory.ids import uuid7
from memory.ports import Draft, Subject
from memory.versions import Head, Placed, line, placed, recorded, same_content

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
ANN = Subject(key="ann", hash="a" * 64)
BOB = Subject(key="bob", hash="b" * 64)


def draft(**changes: Any) -> Draft:
    made = Draft(
        record_id=uuid7(),
        own_id=True,
        origin="remembered",
        kind="episodic",
        text="a window seat",
        metadata={"n": 1},
        redacted=("text",),
        subjects=(BOB, ANN),
        occurred_at=NOW,
        dated=False,
        terms={"window": 2, "seat": 1},
    )
    return replace(made, **changes)


def test_a_draft_without_a_key_is_its_own_line() -> None:
    keyless = draft()
    assert line(keyless) == str(keyless.record_id)
    assert line(draft(record_key="plan")) == "plan"


def test_versions_count_on_from_the_newest_and_within_the_batch() -> None:
    drafts = [draft(record_key=key) for key in ("plan", "home", "plan", "plan")]
    heads = {"plan": Head(record_id=uuid4(), version=7, current=False)}
    items = placed(drafts, heads)
    assert [item.version for item in items] == [8, 1, 9, 10]
    assert [item.superseded for item in items] == [True, False, True, False]
    assert [item.draft for item in items] == drafts


def test_a_key_that_spells_a_records_id_continues_that_record() -> None:
    keyless = draft()
    (item,) = placed(
        [draft(record_key=str(keyless.record_id))],
        {str(keyless.record_id): Head(record_id=keyless.record_id, version=1, current=True)},
    )
    assert item.version == 2


def test_a_record_is_about_its_own_people_or_those_it_inherits() -> None:
    item = Placed(draft=draft(), version=3)
    record = recorded("acme", item, NOW)
    assert record.subject_keys == ("ann", "bob")
    assert (record.version, record.superseded_at, record.created_at) == (3, None, NOW)
    inherited = recorded("acme", item, NOW, subject_keys=["zoe", "cid"], sources=[UUID(int=2)])
    assert inherited.subject_keys == ("cid", "zoe")
    assert inherited.sources == (UUID(int=2),)


def test_a_version_superseded_within_its_batch_was_so_when_it_was_written() -> None:
    assert recorded("acme", Placed(draft=draft(), superseded=True), NOW).superseded_at == NOW


def test_a_model_without_a_vector_is_not_recorded() -> None:
    plain = recorded("acme", Placed(draft=draft(embedding_model="mini")), NOW)
    assert (plain.embedding_model, plain.embedding_dims) == (None, None)
    vector = draft(embedding_model="mini", embedding=(1.0, 0.5))
    embedded = recorded("acme", Placed(draft=vector), NOW)
    assert (embedded.embedding_model, embedded.embedding_dims) == ("mini", 2)


LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"subjects": (ANN, BOB)}, True),
        ({"occurred_at": LATER}, True),
        ({"occurred_at": LATER, "dated": True}, False),
        ({"occurred_at": NOW, "dated": True}, True),
        ({"text": "an aisle seat"}, False),
        ({"text": "a"}, False),
        ({"kind": "profile"}, False),
        ({"kind": "".join(["epi", "sodic"])}, True),
        ({"metadata": {"n": 1.0}}, True),
        ({"metadata": {"n": 2}}, False),
        ({"subjects": (ANN,)}, False),
        ({"record_key": "plan"}, False),
        ({"expires_at": LATER}, False),
        ({"origin": "derived"}, False),
    ],
)
def test_a_retry_has_the_same_content_and_nothing_else_does(
    change: dict[str, Any], same: bool
) -> None:
    first = draft()
    record = recorded("acme", Placed(draft=first), NOW)
    assert same_content(record, {"ann", "bob"}, replace(first, **change)) is same


def test_people_recognised_since_then_do_not_make_a_retry_another_memory() -> None:
    first = draft()
    record = replace(recorded("acme", Placed(draft=first), NOW), subject_keys=("ann", "bob", "zoe"))
    assert same_content(record, {"ann", "bob"}, first)
    assert not same_content(record, {"ann", "bob", "zoe"}, first)
