"""The vector store of the example is purged, and its files are read by the test itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import asyncpg
import pytest

from memory import HashingEmbedder, Memory, PartialErasureError, PostgresStore
from servers import Database

ASHA, LI = "customer:asha", "customer:li"


@pytest.fixture(scope="module")
def example(root: Path) -> ModuleType:
    module = ModuleType("external_index")
    file = root / "examples" / "external_index.py"
    sys.modules[module.__name__] = module
    exec(compile(file.read_text(), file, "exec"), vars(module))  # noqa: S102 - our own example
    return module


def held(folder: Path, needle: bytes) -> list[str]:
    """The files that hold these bytes."""
    return [file.name for file in sorted(folder.iterdir()) if needle in file.read_bytes()]


def test_the_example_leaves_no_byte_of_the_person_in_the_files(root: Path, tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if not k.endswith("DATABASE_URL")}
    done = subprocess.run(
        [sys.executable, "-W", "error", root / "examples" / "external_index.py", tmp_path],
        cwd=root.parent,
        env=clean,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "complete True, purged sqlite-vec" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("customer:")]
    assert len(rows) == 6
    for row in rows:
        assert int(row[-2]) > 0
        assert (int(row[-1]) > 0) is row[0].startswith(LI)
    assert held(tmp_path, b"Asha Kulkarni") == []
    assert held(tmp_path, b"Li would like her parcels") == ["entries.db"]


class Filled:
    """A vector store with an entry about Asha and one about Li, registered with a memory."""

    def __init__(self, example: ModuleType, memory: Memory, index: Any, folder: Path) -> None:
        self.example, self.index, self.folder = example, index, folder
        self.shop = memory.for_tenant("shop")
        self.needles: dict[str, dict[str, bytes]] = {}

    async def fill(self) -> Filled:
        for person, text in self.example.TOLD.items():
            told = (await self.shop.remember(text=text, subject_keys=person)).record
            self.needles[person] = await self.example.index_summary(self.shop, self.index, told)
        return self

    def found(self, person: str) -> dict[str, bool]:
        return {name: held(self.folder, it) != [] for name, it in self.needles[person].items()}


THERE = {"artefact id": True, "text": True, "vector": True}
GONE = dict.fromkeys(THERE, False)


@pytest.fixture
def index(example: ModuleType, tmp_path: Path) -> Iterator[Any]:
    index = example.SqliteVecIndex(tmp_path / "entries.db")
    yield index
    index.close()


async def test_a_purge_takes_every_byte_and_leaves_the_neighbours(
    example: ModuleType, index: Any, database: Database, tmp_path: Path
) -> None:
    store = PostgresStore(database.app_url)
    async with Memory(store, indexes=[index], subject_pepper="p") as memory:
        filled = await Filled(example, memory, index, tmp_path).fill()
        assert (filled.found(ASHA), filled.found(LI)) == (THERE, THERE)
        assert (await filled.shop.forget(subject_key=ASHA)).complete
        assert (filled.found(ASHA), filled.found(LI)) == (GONE, THERE)
        ids = [needles["artefact id"].decode() for needles in filled.needles.values()]
        assert await index.present(ids) == ids[1:]
        [vector] = await HashingEmbedder(example.DIMENSIONS).embed(["cracked kettle"])
        assert await index.nearest(vector) == [f"Summary: {example.TOLD[LI]}"]


async def test_a_reader_that_keeps_the_log_keeps_the_debt(
    example: ModuleType, index: Any, database: Database, tmp_path: Path
) -> None:
    store = PostgresStore(database.app_url)
    async with Memory(store, indexes=[index], subject_pepper="p") as memory:
        filled = await Filled(example, memory, index, tmp_path).fill()
        reader = apsw.Connection(str(tmp_path / "entries.db"))
        reader.execute("begin")
        list(reader.execute("select count(*) from sqlite_schema"))
        with pytest.raises(PartialErasureError) as partial:
            await filled.shop.forget(subject_key=ASHA)
        assert partial.value.receipt.outstanding == ("sqlite-vec",)
        assert filled.found(ASHA)["text"]
        reader.close()
        assert (await filled.shop.purge_outstanding()).settled == 1
        assert (filled.found(ASHA), filled.found(LI)) == (GONE, THERE)


async def test_a_plain_delete_would_leave_the_bytes(
    example: ModuleType, index: Any, tmp_path: Path
) -> None:
    """Else reading the files would prove nothing."""
    body = "Asha says that the kettle arrived cracked"
    await index.write("a1", [0.5] * example.DIMENSIONS, body)
    plain = example.SqliteVecIndex(tmp_path / "entries.db")
    plain._connection.execute("pragma secure_delete = off")
    plain._connection.execute("delete from entries where artefact_id = 'a1'")
    plain.close()
    assert await index.present(["a1"]) == []
    assert held(tmp_path, body.encode()) != []


async def test_the_page_shows_how_to_ask_what_is_owed(
    root: Path, app: asyncpg.Connection, database: Database
) -> None:
    page = (root / "docs" / "indexes.md").read_text()
    (query,) = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    async with Memory(PostgresStore(database.app_url), subject_pepper="p") as memory:
        told = (await memory.remember("shop", text="x", subject_keys=ASHA)).record
        await memory.register_artefact("shop", adapter="cache", artefact_id="a", sources=told)
        with pytest.raises(PartialErasureError):
            await memory.forget("shop", subject_key=ASHA)
    _, setting, select, _ = (part.strip() for part in query.strip().rstrip(";").split(";"))
    async with app.transaction():
        await app.execute(setting)
        (row,) = await app.fetch(select)
    assert tuple(row)[:2] == ("cache", 1)
