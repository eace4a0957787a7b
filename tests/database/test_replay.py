"""A backup brings erased people back; replaying the tombstones erases them again, and only them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import psycopg
import pytest

import memory
from memory import (
    InstallError,
    InvalidInputError,
    Memory,
    PartialErasureError,
    TenantMemory,
    tombstones,
)
from memory.maintenance import replaying
from memory.stores.postgres import PostgresStore
from restores import backup, codes, damage, opened, stream, texts
from servers import Database
from stores import broken_rules, image, mentions


@contextmanager
def looking(database: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        yield superuser


async def furnish(home: TenantMemory) -> None:
    """Ann alone, Ann beside Bob, a digest of both, and Bob alone."""
    ann = await home.remember(text="needle: Ann likes tea", subject_keys="ann")
    both = await home.remember(text="needle: Ann met Bob", subject_keys=["ann", "bob"])
    await home.derive(
        kind="summary", text="needle: in short", sources=[ann, both], artefacts=[("index", "d1")]
    )
    bob = await home.remember(text="Bob alone", subject_keys="bob")
    await home.derive(kind="summary", text="Bob in short", sources=bob)


async def forgotten(database: Database, *people: str) -> list[str]:
    """Forget people in the living database; the stream exported afterwards."""
    async with opened(database) as service:
        for person in people:
            await service.forget("acme", subject_key=person, reason="operator")
    return await stream(database)


async def test_who_was_erased_after_the_backup_is_erased_again_and_nobody_else(
    database: Database,
) -> None:
    async with opened(database) as service:
        await furnish(service.for_tenant("acme"))
        await furnish(service.for_tenant("globex"))
    with backup(database) as restored:
        async with Memory(
            PostgresStore(database.app_url), subject_pepper="p", indexes=[Purging()]
        ) as service:
            original = await service.forget("acme", subject_key="ann", reason="operator")
        lines = await stream(database)
        before = await memory.check(restored.owner_url, tombstones=lines)
        [fault] = [fault for fault in before.faults if fault.code == "resurrected"]
        assert (fault.tenant_key, fault.count, before.ok) == ("acme", 3, False)

        inspector = await asyncpg.connect(restored.superuser_url)
        untouched = await image(inspector, "globex")
        steps: list[str] = []
        done = await memory.replay(
            restored.owner_url, lines, progress=lambda step, _: steps.append(step)
        )
        assert (done.tombstones, done.known, done.people, done.records) == (1, 0, 1, 3)
        assert (done.held, done.complete, done.outstanding) == (0, False, ("index",))
        assert steps == ["tenants", "people"]
        again = await memory.replay(restored.owner_url, lines)
        assert (again.records, again.complete, again.outstanding) == (0, False, ("index",))

        assert await image(inspector, "globex") == untouched
        found = await mentions(inspector, "needle", "ann")
        assert found.keys() <= {"records", "record_subjects", "postings"}
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            assert await texts(home) == {"Bob alone", "Bob in short"}
            [stone] = await home.erasure_history()
            assert stone.erasure_id == original.erasure_id
            assert (stone.reason, stone.scope) == ("operator", "subject")
            assert (stone.memories, stone.derived) == (2, 1)
            assert (await home.purge_outstanding()).outstanding == ("index",)
        async with Memory(
            PostgresStore(restored.app_url), subject_pepper="p", indexes=[Purging()]
        ) as service:
            assert (await service.purge_outstanding("acme")).outstanding == ()
        settled = await memory.replay(restored.owner_url, lines)
        assert (settled.complete, settled.outstanding) == (True, ())
        assert await broken_rules(inspector) == {}
        await inspector.close()

        after = await memory.check(restored.owner_url, tombstones=lines)
        assert after.ok
        assert {fault.code for fault in after.faults} == {"chain_lost"}
        again = await memory.replay(restored.owner_url, lines)
        assert (again.people, again.records) == (0, 0)
        async with opened(restored) as service:
            assert len(await service.erasure_history("acme")) == 1


class Purging:
    name = "index"

    async def purge(self, artefact_ids: Any) -> int:
        return len(artefact_ids)


async def test_what_was_remembered_after_the_erasure_stays(database: Database) -> None:
    async with opened(database) as service:
        await service.remember("acme", text="old", subject_keys="ann")
    with backup(database) as restored:
        lines = await forgotten(database, "ann")
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            new = await home.remember(text="new", subject_keys=["ann", "bob"])
            await home.derive(kind="summary", text="of the new", sources=new)
            done = await memory.replay(restored.owner_url, lines)
            assert (done.people, done.records) == (1, 1)
            assert await texts(home) == {"new", "of the new"}
            old = await home.derive(kind="summary", text="again", sources=new)
            assert old.record.subject_keys == ("ann", "bob")
        assert "resurrected" not in await codes(restored, lines)


async def test_what_is_derived_from_what_came_back_goes_whenever_it_was_made(
    database: Database,
) -> None:
    async with opened(database) as service:
        told = await service.remember("acme", text="old", subject_keys="ann")
    with backup(database) as restored:
        lines = await forgotten(database, "ann")
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            await home.derive(kind="summary", text="made after the restore", sources=told)
            assert (await memory.replay(restored.owner_url, lines)).records == 2
            assert await texts(home) == set()


async def test_an_erasure_older_than_the_backup_is_not_repeated(database: Database) -> None:
    async with opened(database) as service:
        home = service.for_tenant("acme")
        told = await home.remember(text="Bob's, from of old", subject_keys="bob")
        await home.remember(text="old", subject_keys="ann")
        await home.forget(subject_key="ann")
        # The record is older than Ann's erasure, her link to it is not.
        await home.relate(record_id=told.record, subject_keys="ann")
    with backup(database) as restored:
        lines = await stream(database)
        assert await codes(restored, lines) == {"older_than_erasure"}
        done = await memory.replay(restored.owner_url, lines)
        assert (done.tombstones, done.known, done.records) == (1, 1, 0)
        async with opened(restored) as service:
            assert await texts(service.for_tenant("acme")) == {"Bob's, from of old"}


async def test_rows_restored_into_the_living_database_need_the_known_ones(
    database: Database,
) -> None:
    async with opened(database) as service:
        home = service.for_tenant("acme")
        await home.remember(text="old", subject_keys="ann")
        kept = await home.remember(text="Bob", subject_keys="bob")
    with looking(database) as superuser:
        superuser.execute("create table public.saved as table memory.records")
        superuser.execute("create table public.saved_links as table memory.record_subjects")
    lines = await forgotten(database, "ann")
    assert await codes(database) == set()
    columns = (
        "tenant_key, record_id, origin, kind, text, metadata, redacted, record_key, version,"
        " occurred_at, created_at"
    )
    with looking(database) as superuser, superuser.transaction():
        superuser.execute(
            f"insert into memory.records ({columns}) select {columns} from public.saved"
            " on conflict do nothing"
        )
        superuser.execute(
            "insert into memory.record_subjects select * from public.saved_links"
            " on conflict do nothing"
        )
    assert await codes(database) == {"resurrected"}
    assert (await memory.replay(database.owner_url, lines)).records == 0
    assert (await memory.replay(database.owner_url, lines, known=True)).records == 1
    assert await codes(database) == set()
    async with opened(database) as service:
        assert await service.get("acme", record_id=kept.record) == kept.record
        assert len(await service.erasure_history("acme")) == 2


async def test_a_held_person_is_reported_and_the_others_go(database: Database) -> None:
    async with opened(database) as service:
        home = service.for_tenant("acme")
        for person in ("ann", "bob"):
            await home.remember(text=f"{person} alone", subject_keys=person)
        both = await home.remember(text="both", subject_keys=["ann", "bob"])
        await home.derive(kind="summary", text="of both", sources=both)
    with backup(database) as restored:
        lines = await forgotten(database, "ann", "bob")
        damage(restored, "update memory.records set held = true where text = 'ann alone'")
        damage(restored, "update memory.records set held = true where text = 'of both'")
        done = await memory.replay(restored.owner_url, lines)
        assert (done.people, done.records, done.complete) == (1, 1, False)
        assert done.held >= 3
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            assert await texts(home) == {"ann alone", "both", "of both"}
            assert [stone.memories for stone in await home.erasure_history()] == [1]
        assert "resurrected" in await codes(restored, lines)
        damage(restored, "update memory.records set held = false")
        assert (await memory.replay(restored.owner_url, lines)).complete
        assert await codes(restored, lines) == {"chain_lost"}


async def test_an_erasure_that_does_not_say_what_it_took_is_counted_and_shown(
    database: Database,
) -> None:
    async with opened(database) as service:
        home = service.for_tenant("acme")
        told = await home.remember(text="one", subject_keys="ann", kind="profile")
        await home.remember(text="two", subject_keys="ann")
    with backup(database) as restored:
        async with opened(database) as service:
            await service.forget("acme", subject_key="ann", kinds="profile")
            other = await service.remember("acme", text="three", subject_keys="ann")
            await service.forget_record("acme", record_id=other.record)
        lines = await stream(database)
        done = await memory.replay(restored.owner_url, lines)
        assert (done.narrow, done.records) == ({"kinds": 1, "record": 1}, 0)
        assert (done.to_review, done.complete) == (1, False)
        assert await codes(restored, lines) == {"chain_lost", "narrow_not_repeated"}
        async with opened(restored) as service:
            assert await service.get("acme", record_id=told.record) == told.record


async def test_batches_add_up_and_one_that_was_interrupted_is_taken_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database) as service:
        items = [{"text": f"note {n}", "subject_keys": "ann"} for n in range(25)]
        told = await service.remember_many("acme", items=items)
        await service.derive("acme", kind="summary", text="all", sources=[t.record for t in told])
    with backup(database) as restored:
        lines = await forgotten(database, "ann")
        monkeypatch.setattr(replaying, "_BATCH", 10)
        erase, calls = replaying._erase, []

        async def interrupted(*args: Any, **named: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return await erase(*args, **named)

        monkeypatch.setattr(replaying, "_erase", interrupted)
        with pytest.raises(KeyboardInterrupt):
            await memory.replay(restored.owner_url, lines)
        assert "resurrected" in await codes(restored, lines)
        assert (await memory.replay(restored.owner_url, lines)).records == 15
        async with opened(restored) as service:
            stones = await service.erasure_history("acme")
        assert sum(stone.memories + stone.derived for stone in stones) == 26
        assert len({stone.erasure_id for stone in stones}) == 1
        assert await codes(restored, lines) == {"chain_lost"}


async def test_a_stream_that_was_edited_erases_nothing(database: Database) -> None:
    async with opened(database) as service:
        for person in ("ann", "bob"):
            await service.remember("acme", text=person, subject_keys=person)
    with backup(database) as restored:
        lines = await forgotten(database, "ann", "bob")
        before = await image(connection := await asyncpg.connect(restored.superuser_url), "acme")
        for broken in (lines[:-1], [*lines[:2], lines[2].replace("operator", "subject_request")]):
            with pytest.raises(InvalidInputError):
                await memory.replay(restored.owner_url, broken)
        anchors = tombstones.verify(lines).anchors
        older = {"acme": replace(anchors["acme"], seq=3)}
        with pytest.raises(InvalidInputError, match="anchor"):
            await memory.replay(restored.owner_url, lines, anchors=older)
        assert await image(connection, "acme") == before
        await connection.close()
        assert (await memory.replay(restored.owner_url, lines, anchors=anchors)).records == 2


async def test_only_the_owner_may_replay(database: Database) -> None:
    async with opened(database) as service:
        await service.remember("acme", text="x", subject_keys="ann")
    with backup(database) as restored:
        lines = await forgotten(database, "ann")
        with pytest.raises(InstallError):
            await memory.replay(restored.app_url, lines)
        async with opened(restored) as service:
            assert await texts(service.for_tenant("acme")) == {"x"}


async def test_a_tenant_may_be_exported_alone_and_by_the_application(database: Database) -> None:
    async with opened(database) as service:
        for tenant in ("acme", "globex"):
            await service.forget(tenant, subject_key="ann")
    for url in (database.owner_url, database.app_url):
        lines = [line async for line in memory.export_tombstones(url, tenant_key="acme")]
        assert tombstones.verify(lines).anchors.keys() == {"acme"}
    assert tombstones.verify(await stream(database)).anchors.keys() == {"acme", "globex"}
    with pytest.raises(InstallError):
        [line async for line in memory.export_tombstones(database.app_url)]


async def test_the_erasure_of_a_whole_tenant_is_repeated(database: Database) -> None:
    async with opened(database) as service:
        await furnish(service.for_tenant("acme"))
        await furnish(service.for_tenant("globex"))
    with backup(database) as restored:
        async with opened(database) as service:
            with pytest.raises(PartialErasureError):
                await service.forget_tenant("acme", confirm="acme")
        done = await memory.replay(restored.owner_url, await stream(database))
        assert (done.people, done.records) == (2, 5)
        async with opened(restored) as service:
            assert await texts(service.for_tenant("acme")) == set()
            assert len(await texts(service.for_tenant("globex"))) == 5
            assert {stone.scope for stone in await service.erasure_history("acme")} == {"tenant"}


async def test_what_had_expired_expires_again_and_needs_no_replay(database: Database) -> None:
    past = datetime(2024, 1, 1, tzinfo=UTC)
    async with opened(database) as service:
        await service.remember("acme", text="old", subject_keys="ann", expires_at=past)
        await service.remember("acme", text="new", subject_keys="ann")
    with backup(database) as restored:
        async with opened(database) as service:
            await service.expire("acme")
        lines = await stream(database)
        done = await memory.replay(restored.owner_url, lines)
        assert (done.narrow, done.records) == ({"retention": 1}, 0)
        assert (done.to_review, done.complete) == (0, True)
        assert await codes(restored, lines) == {"chain_lost"}
        async with opened(restored) as service:
            assert (await service.expire("acme")).counts.records == 1
            assert await texts(service.for_tenant("acme")) == {"new"}
