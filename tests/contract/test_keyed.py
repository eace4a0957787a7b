"""Finding records by the keys they were given, and comparing values in their metadata."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory import HashingEmbedder, InvalidInputError, TenantMemory
from memory.repositories.conditions import beyond

KEYS = ["a", "a.b", "a.b/1", "a.b/2", "a.c", "a\U0010ffff", "a\U0010ffffz", "b", "é"]


def keys_of(records) -> list[str]:
    return sorted(record.record_key for record in records)


async def test_keys_are_listed_by_code_point_from_current_records_only(acme: TenantMemory) -> None:
    soon = datetime.now(UTC) - timedelta(seconds=1)
    items = [{"text": "x", "subject_keys": "p", "record_key": key} for key in reversed(KEYS)]
    await acme.remember_many(items=items)
    await acme.remember(text="newer", subject_keys="p", record_key="a.b")
    await acme.remember(text="gone", subject_keys="p", record_key="a.b/3", expires_at=soon)
    own = (await acme.remember(text="without a key", subject_keys="p")).record
    assert await acme.record_keys() == sorted(KEYS)
    assert await acme.record_keys(prefix="a.b") == ["a.b", "a.b/1", "a.b/2"]
    assert await acme.record_keys(prefix="a\U0010ffff") == KEYS[5:7]
    assert await acme.record_keys(prefix="a", after="a.b/1", limit=2) == ["a.b/2", "a.c"]
    assert await acme.record_keys(prefix="b", after="a") == ["b"]
    assert await acme.record_keys(prefix="a", after="b") == []
    # Once there is a second version, the first one's id is a key that was given to it.
    await acme.supersede(record_id=own.record_id, text="with a key")
    assert await acme.record_keys(prefix=str(own.record_id)) == [str(own.record_id)]
    both = await acme.records(record_keys=str(own.record_id), include_superseded=True)
    assert [record.text for record in both] == ["with a key", "without a key"]


async def test_records_are_found_by_key_and_by_the_beginning_of_one(memory_factory) -> None:
    acme = memory_factory(embedder=HashingEmbedder()).for_tenant("acme")
    items = [
        {"text": f"number {place}", "subject_keys": "pq"[place % 2], "record_key": key}
        for place, key in enumerate(KEYS)
    ]
    await acme.remember_many(items=items)
    await acme.remember(text="number old", subject_keys="p", record_key="a.c")
    await acme.remember(text="number free", subject_keys="p")
    assert keys_of(await acme.records(key_prefix="a.b")) == ["a.b", "a.b/1", "a.b/2"]
    [one] = await acme.records(record_keys="a.c")
    assert one.text == "number old"
    both = await acme.records(record_keys=["a.c", "b", "none"], include_superseded=True)
    assert keys_of(both) == ["a.c", "a.c", "b"]
    assert keys_of(await acme.records(record_keys=["a.b", "b"], key_prefix="a")) == ["a.b"]
    assert keys_of(await acme.records(subject_keys="q", key_prefix="a.b")) == ["a.b", "a.b/2"]
    for strategy in ("vector", "lexical", "keyword", "hybrid", "recent"):
        found = await acme.recall(text="number", strategy=strategy, key_prefix="a.b/")
        assert keys_of(hit.record for hit in found.hits) == ["a.b/1", "a.b/2"], strategy
        assert found.exact


async def test_the_greatest_key_of_all_begins_with_its_beginning(acme: TenantMemory) -> None:
    greatest = "\U0010ffff" * 256  # 1,024 bytes
    for key in (greatest, greatest[:-1], "a"):
        await acme.remember(text="x", subject_keys="p", record_key=key)
    for prefix in ("\U0010ffff", greatest[:-1]):
        assert await acme.record_keys(prefix=prefix) == [greatest[:-1], greatest]
        assert keys_of(await acme.records(key_prefix=prefix)) == [greatest[:-1], greatest]
    assert await acme.record_keys() == ["a", greatest[:-1], greatest]
    assert await acme.record_keys(prefix=greatest) == [greatest]
    assert keys_of(await acme.records(key_prefix=greatest)) == [greatest]


async def test_the_id_of_a_record_that_has_a_key_is_the_key_of_nothing(acme: TenantMemory) -> None:
    keyed = (await acme.remember(text="one", subject_keys="p", record_key="k")).record
    own = str(keyed.record_id)
    assert await acme.history(record_key=own) == []
    other = (await acme.remember(text="two", subject_keys="p", record_key=own)).record
    assert other.version == 1
    assert await acme.history(record_key=own) == [other]
    assert await acme.history(record_key="k") == [keyed]
    assert len(await acme.records()) == 2


async def test_an_old_version_shows_with_its_key_only_when_asked_for(acme: TenantMemory) -> None:
    first = (await acme.remember(text="one", subject_keys="p", record_key="k")).record
    await acme.remember(text="two", subject_keys="p", record_key="k")
    found = await acme.recall(text="one", key_prefix="k")
    assert found.hits == ()
    found = await acme.recall(text="one", key_prefix="k", include_superseded=True)
    assert [hit.record.record_id for hit in found.hits] == [first.record_id]


@pytest.mark.parametrize("open_store", ["in_memory", "postgres"], indirect=True)
async def test_comparisons_agree_with_their_meaning(memory_factory) -> None:
    acme = memory_factory(redactor=None).for_tenant("acme")
    held = [None, True, -2, 0.5, 3, "", "a", "B", "é", "10", "9", [1], [1, "a"], {"k": 1}]
    items = [{"text": "x", "subject_keys": "p", "metadata": {"at": {"v": value}}} for value in held]
    await acme.remember_many(items=[*items, {"text": "x", "subject_keys": "p"}])

    async def found(operator, value):
        records = await acme.records(where=[(("at", "v"), operator, value)], limit=100)
        return [record.metadata.get("at", {}).get("v") for record in reversed(records)]

    for step in ("+1", " 1", "\n+1", "-1"):
        path = ("at", "v", step)
        assert [r.metadata["at"]["v"] for r in await acme.records(where=[(path, "==", "a")])] == [
            [1, "a"]
        ], step
    orders = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    for value in (0, 0.5, 3, "a", "9", ""):
        same = str if isinstance(value, str) else (int, float)
        alike = [item for item in held if isinstance(item, same) and not isinstance(item, bool)]
        for operator, order in orders.items():
            assert await found(operator, value) == [i for i in alike if order(i, value)]
    for value in (*held, 3.0, 1, False, []):
        equal = await found("==", value)
        assert equal == [i for i in [*held, None] if type(i) is type(value) and i == value] or (
            value == 3.0 and equal == [3]
        )
        assert len(equal) + len(await found("!=", value)) == len(held) + 1
    # A number is what its JSON says, not the nearest binary fraction.
    await acme.remember(text="x", subject_keys="p", metadata={"big": 10**40})
    assert len(await acme.records(where=[("big", "<=", 1e40), ("big", ">=", 1e40)])) == 1
    assert await acme.records(where=[("big", "<", 1e40)]) == []


async def test_comparisons_reach_into_arrays_join_and_go_with_every_search(memory_factory) -> None:
    acme = memory_factory(embedder=HashingEmbedder()).for_tenant("acme")
    for place in range(4):
        days = {"trip": [{"days": place}, {"days": -place}], 'a"b': place % 2}
        await acme.remember(text=f"trip {place}", subject_keys="p", metadata=days)
    where = [(("trip", "-1", "days"), "<=", -1), ('a"b', "==", 1)]
    for strategy in ("vector", "lexical", "keyword", "hybrid", "recent"):
        for subject in (None, "p"):
            found = await acme.recall(
                text="trip", strategy=strategy, where=where, subject_keys=subject
            )
            assert sorted(hit.record.text for hit in found.hits) == ["trip 1", "trip 3"], strategy
    both = await acme.records(
        where=where, metadata={'a"b': 1}, since=datetime.min.replace(tzinfo=UTC)
    )
    assert [record.text for record in both] == ["trip 3", "trip 1"]


async def test_what_is_compared_is_masked_as_what_is_stored_was(acme: TenantMemory) -> None:
    told = await acme.remember(
        text="x", subject_keys="p", metadata={"mail": "dana@example.com", "n": 1}
    )
    [found] = await acme.records(where=[("mail", "==", "dana@example.com"), ("n", ">", 0)])
    assert found == told.record
    assert "dana" not in str(found.metadata)
    assert await acme.records(where=[("mail", "!=", "dana@example.com")]) == []


@pytest.mark.parametrize("open_store", ["in_memory"], indirect=True)
@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("at", "where"),
        ([("at", "==")], "where.0"),
        ([("at", "=", 1)], "where.0.1"),
        ([((), "==", 1)], "where.0.0"),
        ([(("a",) * 32, "==", 1)], "where.0.0"),
        ([((1,), "==", 1)], "where.0.0"),
        ([("at", "<", None)], "where.0.2"),
        ([("at", ">", True)], "where.0.2"),
        ([("at", "==", float("nan"))], "where.0.2.0"),
        ([("at", "==", 1)] * 101, "where"),
    ],
)
async def test_comparisons_that_mean_nothing_are_refused(acme, where, field) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await acme.records(where=where)
    assert refused.value.field == field
    assert await acme.records(where=[("at", "==", 1)] * 100) == []


@pytest.mark.parametrize(
    "prefix", ["a", "é", "a\ud7ff", "a\ue000", "a\U0010ffff", "\U0010ffff", "", "a\U0010fffe"]
)
def test_every_key_with_a_prefix_lies_below_the_bound(prefix: str) -> None:
    bound = beyond(prefix).encode()
    for rest in ("", "\x01", "z", "\U0010ffff", "\U0010ffff" * 250):
        key = (prefix + rest).encode()
        assert prefix.encode() <= key < bound or len(key) > 1024
    assert not beyond(prefix).startswith(prefix) or set(prefix) <= {"\U0010ffff"}
