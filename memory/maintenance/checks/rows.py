"""Rows that should have their counterparts: each table once, page by page along its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Access, AnyRow, fetch
from memory.maintenance.checks.faults import Collector
from memory.maintenance.walking import Progress
from memory.repositories import tenancy

__all__ = ["check_rows"]

_PAGE: Final = 5_000
# The "offset 0" in every "exists" keeps it a probe for each row: without it each page would read
# the whole tenant into a hash table, and the check as a whole would be quadratic.
_NO_RECORD: Final = """
not exists (
    select from memory.records as r
    where r.tenant_key = $1 and r.record_id = x.{column} offset 0
)
"""

_HELD: Final = """
select from memory.record_subjects as l
cross join lateral (
    select from memory.subjects as s
    where s.tenant_key = $1 and s.subject_hash = l.subject_hash and s.held offset 0
) as s
where l.tenant_key = $1 and l.record_id = x.record_id offset 0
"""
_DECIDED: Final = """
(
    select d.action from memory.decisions as d
    where d.tenant_key = $1 and d.subject_hash = x.subject_hash and d.action in ({set}, {lifted})
    order by d.seq desc limit 1
) = {set}
"""
_BLOCKED: Final = _DECIDED.format(set="'block'", lifted="'readmit'")
_ON_HOLD: Final = _DECIDED.format(set="'hold'", lifted="'release'")


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A table, its key after the tenant, and what is wrong with a row ``x``, by code."""

    name: str
    key: Mapping[str, str]
    columns: tuple[str, ...] = ()
    wrong: Mapping[str, str]
    example: str = "record_id"

    @cached_property
    def first(self) -> str:
        """The statement for the first page; ``$2`` is its size."""
        return self._statement("")

    @cached_property
    def next(self) -> str:
        """The statement for a page behind the key that stands in ``$3`` and on."""
        places = ", ".join(f"${n}::{of}" for n, of in enumerate(self.key.values(), 3))
        return self._statement(f"and ({', '.join(f'y.{name}' for name in self.key)}) > ({places})")

    def _statement(self, condition: str) -> str:
        columns = ", ".join(f"y.{name}" for name in (*self.key, *self.columns))
        order = ", ".join(self.key)
        faults = ", ".join(
            f"count(*) filter (where j.{code}) as {code},"
            f" (array_agg(j.example) filter (where j.{code}))[:5] as {code}_examples"
            for code in self.wrong
        )
        judged = ", ".join(f"({condition}) as {code}" for code, condition in self.wrong.items())
        last = ", ".join(
            f"(array_agg(j.{name} order by {', '.join(f'j.{k} desc' for k in self.key)}))[1]"
            f" as last_{name}"
            for name in self.key
        )
        return f"""
with page as materialized (
    select {columns} from memory.{self.name} as y
    where y.tenant_key = $1 {condition} order by {order} limit $2
),
judged as materialized (
    select {", ".join(f"x.{name}" for name in self.key)}, x.{self.example}::text as example,
        {judged}
    from page as x
)
select count(*) as n, {last}, {faults} from judged as j
"""


_TABLES: Final = (
    _Table(
        name="records",
        key={"record_id": "uuid"},
        columns=("origin", "term_count", "held"),
        wrong={
            "subject_missing": """
not exists (
    select from memory.record_subjects as l
    where l.tenant_key = $1 and l.record_id = x.record_id offset 0
)""",
            "derived_sourceless": """
x.origin = 'derived' and not exists (
    select from memory.provenance as p
    where p.tenant_key = $1 and p.derived_id = x.record_id offset 0
)""",
            "subject_not_inherited": """
x.origin = 'derived' and exists (
    select from memory.provenance as p
    cross join lateral (
        select l.subject_key from memory.record_subjects as l
        where l.tenant_key = $1 and l.record_id = p.source_id offset 0
    ) as l
    where p.tenant_key = $1 and p.derived_id = x.record_id and l.subject_key not in (
        select k.subject_key from memory.record_subjects as k
        where k.tenant_key = $1 and k.record_id = x.record_id
    )
    offset 0
)""",
            "hold_missing": f"not x.held and exists ({_HELD})",
            "hold_stale": f"x.held and not exists ({_HELD})",
            "postings_missing": """
x.term_count > 0 and not exists (
    select from memory.postings as w
    where w.tenant_key = $1 and w.record_id = x.record_id offset 0
)""",
        },
    ),
    _Table(
        name="record_subjects",
        key={"record_id": "uuid", "subject_key": "text"},
        columns=("subject_hash",),
        wrong={
            "link_orphan": _NO_RECORD.format(column="record_id"),
            "subject_two_hashes": """
exists (
    select from memory.record_subjects as k where k.tenant_key = $1
        and k.subject_key = x.subject_key and k.subject_hash < x.subject_hash offset 0
)""",
        },
    ),
    _Table(
        name="subjects",
        key={"subject_hash": "text"},
        columns=("blocked", "held"),
        wrong={
            "decision_not_enforced": (
                f"(not x.blocked and {_BLOCKED}) is true or (not x.held and {_ON_HOLD}) is true"
            ),
            "flag_undecided": (
                f"(x.blocked and {_BLOCKED} is not true) or (x.held and {_ON_HOLD} is not true)"
            ),
        },
        example="subject_hash",
    ),
    _Table(
        name="provenance",
        key={"derived_id": "uuid", "source_id": "uuid"},
        wrong={
            "edge_orphan": (
                f"{_NO_RECORD.format(column='derived_id')} or"
                f" {_NO_RECORD.format(column='source_id')}"
            )
        },
        example="derived_id",
    ),
    _Table(
        name="postings",
        key={"term": "text", "record_id": "uuid"},
        wrong={"posting_orphan": _NO_RECORD.format(column="record_id")},
    ),
    _Table(
        name="artefacts",
        key={"adapter": "text", "artefact_id": "text", "record_id": "uuid"},
        wrong={"artefact_orphan": _NO_RECORD.format(column="record_id")},
    ),
    _Table(
        name="purges",
        key={"adapter": "text", "artefact_id": "text"},
        columns=("requested_at", "erasure_id"),
        wrong={"purge_stale": "x.requested_at < clock_timestamp() - interval '1 day'"},
        example="adapter",
    ),
)


async def check_rows(access: Access, tenant_key: str, found: Collector, progress: Progress) -> None:
    """Look at every row of a tenant once; a page at a time, each in a snapshot of its own."""
    for table in _TABLES:
        after: list[Any] = []
        while True:
            row = await access.several(_page(table, tenant_key, after))
            found.rows += row.n
            progress("rows", found.rows)
            for code in table.wrong:
                examples = getattr(row, f"{code}_examples") or ()
                found.add(code, tenant_key, getattr(row, code), *examples)
            if row.n < _PAGE:
                break
            after = [getattr(row, f"last_{name}") for name in table.key]
    await access.several(_counts(tenant_key, found))


def _page(table: _Table, tenant_key: str, after: list[Any]) -> Any:
    async def work(connection: AsyncConnection) -> AnyRow:
        await tenancy.enter(connection, tenant_key)
        statement = table.next if after else table.first
        return (await fetch(connection, statement, tenant_key, _PAGE, *after))[0]

    return work


_COUNTS: Final = """
select
    (select count(*) from memory.pending_evidence as p where p.tenant_key = $1) as unsealed,
    (
        (select count(*) from memory.records as r where r.tenant_key = $1),
        (select coalesce(sum(r.term_count), 0) from memory.records as r where r.tenant_key = $1)
    ) is distinct from (
        (select coalesce(sum(c.records), 0) from memory.tenant_counts as c where c.tenant_key = $1),
        (select coalesce(sum(c.terms), 0) from memory.tenant_counts as c where c.tenant_key = $1)
    ) as off
"""


def _counts(tenant_key: str, found: Collector) -> Any:
    async def work(connection: AsyncConnection) -> None:
        await tenancy.enter(connection, tenant_key)
        row = (await fetch(connection, _COUNTS, tenant_key))[0]
        found.add("evidence_unsealed", tenant_key, row.unsealed)
        found.add("counts_off", tenant_key, int(row.off))

    return work
