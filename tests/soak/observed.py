"""What both stores hold, read past them: from the tables as a superuser, or from the shelves.

Both give the state that ``world.Home.state`` describes, every row as text beside it, and the chain.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory import InMemoryStore
from rawsql import TABLES, TENANT_TABLES, Connection
from world import framed

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_STONE = [
    "format",
    "previous",
    "tenant_key",
    "seq",
    "erasure_id",
    "subject_hash",
    "reason",
    "scope",
    "memories",
    "derived",
    "provenance_edges",
    "artefacts",
]


@dataclass
class Observed:
    """A tenant's state; ``rows`` are its records as text, ``image`` all of its rows.

    ``shared`` is what belongs to no tenant alone.
    """

    state: dict[str, Any]
    rows: dict[UUID, str]
    image: str
    shared: str = ""
    faults: list[str] = field(default_factory=list)


def chain_faults(tenant: str, stones: Iterable[Any], head: tuple[int, str] | None) -> list[str]:
    """The chain of tombstones, computed anew from their columns."""
    faults, previous, seq = [], "", 0
    for stone in stones:
        seq += 1
        columns = [stone[name] for name in _STONE]
        microseconds = (stone["erased_at"] - _EPOCH) // timedelta(microseconds=1)
        digest = hashlib.sha256(framed(*columns, microseconds)).hexdigest()
        if (stone["seq"], stone["previous"], stone["digest"]) != (seq, previous, digest):
            faults.append(f"tombstone {seq} of {tenant} does not continue the chain")
        previous = stone["digest"]
    if head is not None and head != (seq, previous):
        faults.append(f"the head of {tenant}'s chain is not its newest tombstone")
    return faults


_RECORDS = """
    select r.record_id, r.origin, r.kind, r.text, coalesce(r.record_key, r.record_id::text) as line,
        r.version, r.superseded_at is null as current, r.expires_at, r.held, r::text as whole
    from memory.records as r where r.tenant_key = $1
"""
_REST = {
    "links": "select record_id, subject_key, subject_hash, inherited from memory.record_subjects",
    "edges": "select derived_id, source_id from memory.provenance",
    "words": "select record_id, term from memory.postings",
    "artefacts": "select adapter, artefact_id, record_id from memory.artefacts",
    "debts": "select adapter, artefact_id, subject_hashes from memory.purges",
    "subjects": "select subject_hash, blocked, held from memory.subjects",
    "decisions": "select action, subject_hash, seq from memory.decisions",
}
_IMAGE = " union all ".join(
    f"select '{table} ' || t::text as row from memory.{table} as t where t.tenant_key = $1"
    for table in TENANT_TABLES
)
_SHARED = " union all ".join(
    f"select t::text as row from memory.{table} as t" for table in TABLES[len(TENANT_TABLES) :]
)
_CLAIMS = "select claim_hash from memory.artefact_claims where artefact_hash = any($1)"


async def image_in_tables(inspector: Connection, tenant: str) -> str:
    """Every row of the tenant, as text."""
    return "\n".join(row[0] for row in await inspector.fetch(f"{_IMAGE} order by row", tenant))


async def in_tables(inspector: Connection, tenant: str, start: datetime) -> Observed:
    """Read every table; what is there twice, or has no place in the state, is a fault."""
    async with inspector.transaction(isolation="repeatable_read", readonly=True):
        records = await inspector.fetch(_RECORDS, tenant)
        rest = {
            name: [
                tuple(row) for row in await inspector.fetch(f"{sql} where tenant_key = $1", tenant)
            ]
            for name, sql in _REST.items()
        }
        stones = await inspector.fetch(
            "select * from memory.tombstones where tenant_key = $1 order by seq", tenant
        )
        head = await inspector.fetchrow(
            "select seq, digest from memory.chain_heads where tenant_key = $1", tenant
        )
        sums = await inspector.fetchrow(
            "select coalesce(sum(records), 0), coalesce(sum(terms), 0) from memory.tenant_counts"
            " where tenant_key = $1",
            tenant,
        )
        unsealed = await inspector.fetchval("select count(*) from memory.pending_evidence")
        owned = {framed(*item[:2]): item for item in rest["artefacts"]}
        hashes = [hashlib.sha256(framed_item).hexdigest() for framed_item in owned]
        claims = {row[0] for row in await inspector.fetch(_CLAIMS, hashes)}
        image = await image_in_tables(inspector, tenant)
        shared = [row[0] for row in await inspector.fetch(_SHARED)]
    faults = chain_faults(tenant, map(dict, stones), tuple(head) if head else (0, ""))
    if unsealed:
        faults.append("evidence was never sealed")
    if sums[1] != len(rest["words"]):
        faults.append(f"{sums[1]} terms are counted, {len(rest['words'])} are posted")
    wanted = {hashlib.sha256(framed(tenant, *item)).hexdigest() for item in rest["artefacts"]}
    if not wanted <= claims:
        faults.append("a registration has no claim")
    rows = {row["record_id"]: row["whole"] for row in records}
    state = {
        "records": {
            row["record_id"]: (*tuple(row)[1:7], _hours(row["expires_at"], start), row["held"])
            for row in records
        },
        "links": set(rest["links"]),
        "edges": set(rest["edges"]),
        "words": set(rest["words"]),
        "count": sums[0],
        "artefacts": set(rest["artefacts"]),
        "debts": {(adapter, item, frozenset(people)) for adapter, item, people in rest["debts"]},
        "blocked": {one for one, blocked, _ in rest["subjects"] if blocked},
        "held": {one for one, _, held in rest["subjects"] if held},
        "stones": Counter(tuple(map(stone.get, _STONE[5:])) for stone in stones),
        "decisions": [row[:2] for row in sorted(rest["decisions"], key=lambda row: row[2])],
    }
    return Observed(state, rows, image, "\n".join(shared), faults)


def on_the_shelf(store: InMemoryStore, tenant: str, start: datetime) -> Observed:
    """Read the same from the store in this process."""
    shelf = store._shelf(tenant)
    stones = [
        {name: getattr(stone, name) for name in (*_STONE, "erased_at", "digest")}
        for stone in shelf.tombstones
    ]
    records = {item: row.record for item, row in shelf.rows.items()}
    edges = {(i, source) for i, record in records.items() for source in record.sources}
    faults = chain_faults(tenant, stones, None)
    made = {(derived, source) for source, all_ in shelf.derived_from.items() for derived in all_}
    if edges != made:
        faults.append("what was derived from what is not what its records say")
    lines = sorted(item for line in shelf.lines.values() for item in line)
    if lines != sorted(records):
        faults.append("a line of versions has records that are gone, or lacks some")
    state = {
        "records": {
            i: (
                one.origin,
                one.kind,
                one.text,
                one.record_key,
                one.version,
                one.superseded_at is None,
                _hours(one.expires_at, start),
                shelf.is_held(i),
            )
            for i, one in records.items()
        },
        "links": {
            (i, key, hash_, key not in row.direct)
            for i, row in shelf.rows.items()
            for key, hash_ in row.subjects.items()
        },
        "edges": edges,
        "words": {(i, word) for i, row in shelf.rows.items() for word in row.terms},
        "count": len(records),
        "artefacts": {(*item, i) for item, ids in shelf.artefacts.items() for i in ids},
        "debts": {(*item, owed.people) for item, owed in shelf.debts.items()},
        "blocked": set(shelf.blocked),
        "held": set(shelf.held),
        "stones": Counter(tuple(map(stone.get, _STONE[5:])) for stone in stones),
        "decisions": [(one.action, one.subject_hash) for one in shelf.decisions],
    }
    rows = {i: str(astuple(row.record)) for i, row in shelf.rows.items()}
    return Observed(state, rows, image_on_the_shelf(store, tenant), "", faults)


def image_on_the_shelf(store: InMemoryStore, tenant: str) -> str:
    return str(_plain(store._shelf(tenant)))


def _plain(thing: Any) -> Any:
    """Everything reachable as plain values: the classes leave content out of their ``repr``."""
    if isinstance(thing, dict):
        return [(_plain(key), _plain(value)) for key, value in thing.items()]
    if isinstance(thing, list | tuple | set | frozenset):
        return [_plain(item) for item in thing]
    slots = getattr(type(thing), "__slots__", None)
    if slots and hasattr(thing, slots[0]):
        return [(name, _plain(getattr(thing, name))) for name in slots]
    return str(thing)


def _hours(moment: datetime | None, start: datetime) -> int | None:
    return None if moment is None else round((moment - start) / timedelta(hours=1))
