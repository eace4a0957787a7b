"""What is left of a person after each library's own deletion: the benchmark of the promise.

A person's memories, a summary that an agent filed under them, and a digest about them and a
neighbour are written into each library; the person is deleted by the best way that the library
documents. Then everything is searched: the tables, files beside the server, the planner's
statistics, and the bytes of the server's own files, for sixteen bytes of any text or vector. The
controls: all of it is found before the deletion, and the neighbour's after it.

Each library gets a server of its own, since the write-ahead log is the whole server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg

from contenders import opened
from memory import embedded
from memory.maintenance import find_residue, scrub
from servers import Database, Postgres
from telling import DIMENSIONS, Contender, RefusedError, Told, Vectors

__all__ = ["QUICK", "Amount", "erode", "table"]

FRAGMENT: Final = 16
# As in production: its samples are what statistics are about.
SETTINGS: Final = {"autovacuum": "off", "fsync": "off", "max_wal_size": "2GB"}
GONE, STAYS = "dana", "bob"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How many memories of each, and how many summaries are written while a person is deleted."""

    records: int = 40
    races: int = 10
    stages: bool = True
    """Search the files before the deletion, after VACUUM and after scrub, too."""


QUICK: Final = Amount(records=6, races=2, stages=False)


@dataclass(kw_only=True)
class Content:
    """What was written about somebody; every text begins with letters that are nowhere else."""

    chance: random.Random
    vectors: Vectors
    told: list[Told] = field(default_factory=list)
    summary: str = ""
    tokens: list[str] = field(default_factory=list)

    def write(self, quoting: Sequence[str] = ()) -> str:
        """Return a text; what it quotes is in it, as a model's summary keeps facts."""
        token = "".join(self.chance.choices(string.ascii_lowercase, k=24))
        self.tokens.append(token)
        vector = [self.chance.gauss(0, 1) for _ in range(DIMENSIONS)]
        return self.vectors.give(" ".join([token, "says", *quoting]), vector)

    def tell(self, person: str, count: int) -> None:
        self.told = [Told(person=person, text=self.write()) for _ in range(count)]


async def erode(name: str, amount: Amount) -> dict[str, Any]:
    """Write, delete and search, on a server of its own."""
    vectors = Vectors()
    async with embedded.serve(settings=SETTINGS) as running:
        with contextlib.closing(Postgres(running.superuser_url)) as server:
            async with opened(server, name, vectors) as (contender, database):
                place = _Place(
                    contender=contender,
                    database=database,
                    data=Path(running.data_directory),
                    vectors=vectors,
                )
                return await place.run(amount)


@dataclass(kw_only=True)
class _Place:
    contender: Contender
    database: Database
    data: Path
    vectors: Vectors

    async def run(self, amount: Amount) -> dict[str, Any]:
        chance = random.Random(11)  # noqa: S311 - the same for every contender
        gone, stays, both, late = (Content(chance=chance, vectors=self.vectors) for _ in range(4))
        digest = await self._written(gone, stays, both, amount.records)
        await self._sql("analyze")
        before = await self._left(gone, digest)
        neighbour = await self._rows(stays.tokens)
        files = {"before": await self._files(gone, stays)} if amount.stages else {}
        late_text = late.write([gone.tokens[0]])
        survivors = await self._raced(late, amount.races)
        await self.contender.erase(GONE)
        left = await self._left(gone, digest)
        late_write = await self._late(late_text, gone.told[:4])
        entries, quoting = await self.contender.evidence(gone.tokens)
        whole = await self._rows(stays.tokens) == neighbour
        files["after the deletion"] = await self._files(gone, stays)
        if amount.stages:
            await self._sql("vacuum")
            files["after VACUUM"] = await self._files(gone, stays)
            if self.contender.name == "ours":
                report = await scrub(self.database.superuser_url)
                assert report.complete or report.pending
                files["after scrub"] = await self._files(gone, stays)
        return {
            "version": self.contender.version,
            "before": before,
            "left": left,
            "late": {
                "written while deleting": f"{survivors} of {amount.races} stay",
                "written afterwards": late_write,
            },
            "evidence": {"entries": entries, "with what was deleted": quoting},
            "neighbour": whole,
            "files": files,
        }

    async def _written(self, gone: Content, stays: Content, both: Content, count: int) -> str:
        for content, person in ((gone, GONE), (stays, STAYS)):
            content.tell(person, count)
            await self.contender.ingest(content.told)
            content.summary = content.write(content.tokens[:4])
            await self.contender.summarise(content.summary, content.told[:4], person)
        # It quotes only one of them, so that a search for the other finds what is theirs alone.
        digest = both.write(gone.tokens[:2])
        await self.contender.summarise(digest, [*gone.told[:2], *stays.told[:2]], None)
        return digest

    async def _left(self, gone: Content, digest: str) -> dict[str, int]:
        """Count rows, entries of statistics and records beside the server that name the person."""
        token = digest.split()[0]
        own = gone.tokens[: len(gone.told)]
        named = [gone.summary.split()[0]]
        return {
            "memories": len(await self._rows(own, without=[*named, token])),
            "summary": len(await self._rows(named)),
            "digest": len(await self._rows([token])),
            "statistics": await self._statistics(gone.tokens),
            "beside the server": sum(_counted(file, gone.tokens) for file in self.contender.files),
        }

    async def _rows(self, tokens: Sequence[str], without: Sequence[str] = ()) -> list[str]:
        """Return every row of every table of this database that holds one of the tokens."""
        found: list[str] = []
        connection = await asyncpg.connect(self.database.superuser_url)
        tables = await connection.fetch(
            "select c.oid::regclass::text as name from pg_class as c"
            " join pg_namespace as n on n.oid = c.relnamespace where c.relkind = 'r'"
            " and n.nspname not in ('pg_catalog', 'information_schema') order by 1"
        )
        for table in tables:
            rows = await connection.fetch(f"select t::text as row from {table['name']} as t")
            found += [row["row"] for row in rows if any(token in row["row"] for token in tokens)]
        await connection.close()
        return [row for row in found if not any(token in row for token in without)]

    async def _statistics(self, tokens: Sequence[str]) -> int:
        """Return how many of the tokens the planner's samples show in clear."""
        connection = await asyncpg.connect(self.database.superuser_url)
        sampled = await connection.fetchval(
            "select string_agg(concat(stavalues1::text, stavalues2::text, stavalues3::text,"
            " stavalues4::text, stavalues5::text), ' ') from pg_statistic as s"
            " join pg_class as c on c.oid = s.starelid"
            " where c.relnamespace <> 'pg_catalog'::regnamespace"
        )
        await connection.close()
        return sum(token in (sampled or "") for token in tokens)

    async def _files(self, gone: Content, stays: Content) -> dict[str, float]:
        """Return the share of texts and of vectors of which a fragment is in the server's files."""
        await self._sql("checkpoint")
        needles: list[Any] = []
        for content in (gone, stays):
            texts = [one.text for one in content.told]
            needles += [text.split()[0] for text in texts]
            needles += [self.vectors.of(text) for text in texts]
        searched = await asyncio.to_thread(find_residue, self.data, needles, fragment=FRAGMENT)
        assert searched.unreadable == ()
        count = len(gone.told)
        found = [sum(n // count == part for n in searched.found) / count for part in range(4)]
        return {"texts": found[0], "vectors": found[1], "neighbour": min(found[2:])}

    async def _raced(self, late: Content, races: int) -> int:
        """Delete people while an agent writes a summary of each; return how many summaries live."""
        summaries = []
        for number in range(races):
            person = f"racer{number}"
            told = [Told(person=person, text=late.write()) for _ in range(8)]
            await self.contender.ingest(told)
            text = late.write([told[0].text.split()[0]])
            summaries.append(text.split()[0])
            await asyncio.gather(
                self.contender.erase(person), self._written_late(text, told, person, number)
            )
        return len(await self._rows(summaries))

    async def _written_late(self, text: str, of: Sequence[Told], person: str, number: int) -> None:
        await asyncio.sleep(0.001 * number)
        with contextlib.suppress(RefusedError):
            await self.contender.summarise(text, of, person)

    async def _late(self, text: str, of: Sequence[Told]) -> str:
        """An agent that had read the memories writes its summary once they are deleted."""
        try:
            await self.contender.summarise(text, of, GONE)
        except RefusedError:
            return "refused"
        return "stored" if await self._rows([text.split()[0]]) else "lost"

    async def _sql(self, statement: str) -> None:
        connection = await asyncpg.connect(self.database.superuser_url)
        await connection.execute(statement)
        await connection.close()


def _counted(file: Path, tokens: Sequence[str]) -> int:
    """Return how many of the tokens a file and its journals hold."""
    content = b"".join(part.read_bytes() for part in file.parent.glob(f"{file.name}*"))
    return sum(token.encode() in content for token in tokens)


def table(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    names = list(found)
    yield f"{'after the deletion of one person':<48}" + "".join(f"{name:>16}" for name in names)
    for label, cells in _lines(found):
        if set(cells.values()) != {"-"}:
            yield f"{label:<48}" + "".join(f"{cells[name]:>16}" for name in names)


def _lines(found: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, str]]]:
    some = next(iter(found.values()))
    for part in some["left"]:
        yield (
            f"{part}: entries left, of before",
            {n: f"{it['left'][part]} of {it['before'][part]}" for n, it in found.items()},
        )
    for part in some["late"]:
        yield f"summary {part}", {n: it["late"][part] for n, it in found.items()}
    for what in ("texts", "vectors"):
        for stage in ("before", "after the deletion", "after VACUUM", "after scrub"):
            yield (
                f"{what} in the server's files {stage}",
                {
                    n: f"{it['files'][stage][what]:.0%}" if stage in it["files"] else "-"
                    for n, it in found.items()
                },
            )
    for part in some["evidence"]:
        yield f"evidence: {part}", {n: str(it["evidence"][part]) for n, it in found.items()}
    yield "the neighbour", {n: "whole" if _whole(it) else "LOST" for n, it in found.items()}


def _whole(it: Mapping[str, Any]) -> bool:
    """Say whether every row of the neighbour is as it was, and found by every search."""
    return it["neighbour"] and all(stage["neighbour"] == 1 for stage in it["files"].values())
