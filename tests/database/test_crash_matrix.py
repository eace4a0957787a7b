"""Killed anywhere, an erasure with two external indexes is finished by another process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest

from memory import Memory
from memory.fingerprint import subject_hash
from memory.stores.postgres import PostgresStore
from rawsql import TABLES, Connection, damage
from servers import Database

DYING = Path(__file__).parents[1] / "support" / "dying.py"
NAMES = UUID("6f9619ff-8b86-4011-b42d-00c04fc964ff")
PEOPLE = ("ann", "bob", "zoe")
BY_CHANCE = {
    *("delta_id", "digest", "erasure_id", "first_seen", "previous", "seq"),
    *("at", "created_at", "erased_at", "occurred_at", "purged_at", "registered_at"),
}


class Dying:
    """Processes that work for a tenant and die at a point; see ``tests/support/dying.py``."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(DYING), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, verb: str, tenant: str, folder: Path, point: int = -1) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{verb} {tenant} {folder} {point}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate()


class Scene:
    """Ann, whose erasure is killed, Zoe beside her, and a tenant that shares an artefact."""

    def __init__(self, memory: Memory, inspector: Connection, tenant: str, folder: Path) -> None:
        self.memory, self.inspector = memory, inspector
        self.tenant, self.folder = tenant, folder
        self.named: dict[str, str] = {}

    async def told(self, tenant: str, name: str, *people: str) -> Any:
        record_id = uuid5(NAMES, f"{tenant.removeprefix(self.tenant)}/{name}")
        remembered = await self.memory.remember(
            tenant, text=name, subject_keys=people, record_id=record_id
        )
        return remembered.record

    async def made(self, tenant: str, name: str, sources: Any, *artefacts: str) -> None:
        pairs = [artefact.split("/") for artefact in artefacts]
        owned = [(adapter, f"{self.tenant}-{item}") for adapter, item in pairs]
        derived = await self.memory.derive(
            tenant, kind="summary", text=name, sources=sources, artefacts=owned
        )
        self.named[str(derived.record.record_id)] = name
        for adapter, artefact_id in owned:
            file = self.folder / adapter / artefact_id
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)

    async def fill(self) -> Scene:
        other = f"{self.tenant}-other"
        ann, both = (
            await self.told(self.tenant, "tea", "ann"),
            await self.told(self.tenant, "tea for two", "ann", "bob"),
        )
        await self.made(
            self.tenant, "teas", [ann, both], "vectors/v1", "vectors/shared", "cache/c1", "cache/c2"
        )
        zoe = await self.told(self.tenant, "milk", "zoe")
        await self.made(self.tenant, "milks", zoe, "vectors/vz", "cache/cz")
        theirs = await self.told(other, "tea", "ann")
        await self.made(other, "their teas", theirs, "vectors/shared")
        return self

    async def state(self) -> dict[str, list[str]]:
        """Every row and every file, but for what differs by chance."""
        found = {
            table: [
                json.dumps({k: v for k, v in json.loads(row["row"]).items() if k not in BY_CHANCE})
                for row in await self.inspector.fetch(
                    f"select to_jsonb(t)::text as row from memory.{table} as t"
                    " where starts_with(tenant_key, $1)",
                    self.tenant,
                )
            ]
            for table in TABLES
            if table not in ("artefact_claims", "installation")
        }
        found["files"] = [
            str(path.relative_to(self.folder)) + path.read_text()
            for path in self.folder.rglob("*")
            if path.is_file()
        ]
        return {table: sorted(map(self.plain, rows)) for table, rows in found.items()}

    def plain(self, row: str) -> str:
        for tenant in (f"{self.tenant}-other", self.tenant):
            for person in PEOPLE:
                row = row.replace(subject_hash(tenant, person, b"pepper"), f"hash of {person}")
        for record_id, name in self.named.items():
            row = row.replace(record_id, name)
        return row.replace(self.tenant, "tenant")

    async def sound(self) -> bool:
        """No rule is broken, and as many claims are there as registrations."""
        claims = await self.inspector.fetchval(
            "select (select count(*) from memory.artefact_claims)"
            " - (select count(*) from memory.artefacts)"
        )
        return claims == 0 and await damage(self.inspector, self.tenant) == []


@pytest.fixture
async def memory(database: Database) -> AsyncIterator[Memory]:
    async with Memory(
        PostgresStore(database.app_url), redactor=None, subject_pepper="pepper"
    ) as memory:
        yield memory


async def test_a_process_killed_at_any_point_leaves_what_another_finishes(
    database: Database, memory: Memory, superuser: Connection, tmp_path: Path
) -> None:
    dying = Dying(database.app_url)

    async def scene(name: str) -> Scene:
        return await Scene(memory, superuser, name, tmp_path / name).fill()

    whole = await scene("whole")
    before = await whole.state()
    said = dying.run("forget", whole.tenant, whole.folder)
    after = await whole.state()
    assert said.startswith("done ")
    points = int(said.split()[1])
    assert points >= 40
    assert (len(before["files"]), after["files"]) == (
        6,
        ["cache/tenant-czmilks", "vectors/tenant-sharedtheir teas", "vectors/tenant-vzmilks"],
    )
    assert (len(after["purges"]), len(after["purge_receipts"])) == (0, 2)
    resumed = 0
    for point in range(1, points + 1):
        killed = await scene(f"killed{point:03}")
        assert await killed.state() == before
        assert dying.run("forget", killed.tenant, killed.folder, point) == "killed"
        assert await killed.sound()
        resumed += await killed.state() not in (before, after)
        assert dying.run("resume", killed.tenant, killed.folder).startswith("done")
        assert await killed.state() == after, point
        assert await killed.sound()
    dying.close()
    # Some were killed before the commit, some after the last answer; most in between.
    assert points // 3 < resumed < points
