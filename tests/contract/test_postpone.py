"""Later expiry, records that no search by content finds, and versions that have expired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory import InvalidInputError, Item, TenantMemory

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def test_only_what_would_expire_before_is_postponed(memory_factory) -> None:
    now = [NOW]
    acme = memory_factory(clock=lambda: now[0]).for_tenant("acme")
    other = memory_factory(clock=lambda: now[0]).for_tenant("other")
    ends = {"past": NOW - HOUR, "soon": NOW + HOUR, "late": NOW + 9 * HOUR, "never": None}
    told = {
        name: (
            await acme.remember(text=name, subject_keys="p", expires_at=end, record_key=name)
        ).record
        for name, end in ends.items()
    }
    assert await other.postpone(record_ids=list(told.values()), expires_at=NOW + 5 * HOUR) == 0
    assert await acme.postpone(record_ids=list(told.values()), expires_at=NOW + 5 * HOUR) == 1
    assert await acme.postpone(record_ids=[], expires_at=NOW + 5 * HOUR) == 0
    assert await acme.get(record_id=told["past"].record_id) is None
    now[0] = NOW + 2 * HOUR
    kept = {record.text: record.expires_at for record in await acme.records()}
    assert kept == {"soon": NOW + 5 * HOUR, "late": NOW + 9 * HOUR, "never": None}
    now[0] = NOW + 6 * HOUR
    assert (await acme.expire()).counts.memories == 2
    assert sorted(r.text for r in await acme.records()) == ["late", "never"]


async def test_the_ends_of_what_is_postponed_are_exact(memory_factory) -> None:
    now = [NOW - HOUR]
    acme = memory_factory(clock=lambda: now[0]).for_tenant("acme")
    told = (await acme.remember(text="tea", subject_keys="p", expires_at=NOW)).record
    moment = timedelta(microseconds=1)
    assert await acme.postpone(record_ids=[told], expires_at=NOW) == 0
    assert await acme.postpone(record_ids=[told], expires_at=NOW - moment) == 0
    assert await acme.postpone(record_ids=[told], expires_at=NOW + moment) == 1
    now[0] = NOW + moment
    assert await acme.postpone(record_ids=[told], expires_at=NOW + HOUR) == 0
    now[0] = NOW
    assert await acme.postpone(record_ids=[told], expires_at=NOW + HOUR) == 1


async def test_versions_that_have_expired_are_listed_when_asked_for(acme: TenantMemory) -> None:
    gone = datetime.now(UTC) - HOUR
    await acme.remember(text="one", subject_keys="p", record_key="k", expires_at=gone)
    await acme.remember(text="two", subject_keys="p", record_key="k")
    assert [r.text for r in await acme.history(record_key="k")] == ["two"]
    every = await acme.history(record_key="k", include_expired=True)
    assert [r.text for r in every] == ["two", "one"]


async def test_what_is_not_searchable_has_no_vector_and_no_words(memory_factory, plugs) -> None:
    embedder = plugs.RecordingEmbedder()
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    told = await acme.remember_many(
        items=[
            Item(text="secret plan", subject_keys="p", searchable=False),
            Item(text="open plan", subject_keys="p", metadata={"n": 1}),
        ]
    )
    assert embedder.calls == [["open plan"]]
    assert [item.record.embedding_dims for item in told] == [None, 16]
    for strategy in ("vector", "lexical", "keyword", "hybrid"):
        found = await acme.recall(text="plan", strategy=strategy)
        assert [hit.record.text for hit in found.hits] == ["open plan"], strategy
    assert [r.text for r in await acme.records(subject_keys="p")] == ["open plan", "secret plan"]
    given = await acme.remember(text="x", subject_keys="p", embedding=[1.0], searchable=False)
    assert given.record.embedding_dims is None
    assert (await acme.forget(subject_key="p")).counts.memories == 3


@pytest.mark.parametrize("open_store", ["in_memory"], indirect=True)
async def test_wrong_arguments_name_their_field(acme: TenantMemory) -> None:
    for call, field in (
        (acme.postpone(record_ids="x", expires_at=NOW), "record_ids"),
        (acme.postpone(record_ids=["x"], expires_at=NOW), "record_ids.0"),
        (acme.postpone(record_ids=[], expires_at=NOW.replace(tzinfo=None)), "expires_at"),
        (acme.remember(text="x", subject_keys="p", searchable=None), "searchable"),
        (acme.record_keys(prefix=""), "prefix"),
        (acme.record_keys(limit=0), "limit"),
        (acme.history(record_key="k", include_expired=1), "include_expired"),
        (acme.records(key_prefix=""), "key_prefix"),
        (acme.records(record_keys=[]), "record_keys"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            await call
        assert refused.value.field == field
