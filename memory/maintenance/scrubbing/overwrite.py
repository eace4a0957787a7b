"""Free space in tables, written over by rows that are never committed.

VACUUM makes the space of a dead row free and leaves its bytes. The server has no command that
clears them but those that write the table anew under an exclusive lock. New rows overwrite them,
though: so rows of filler are inserted, largest first, until every gap that can take one has one,
and rolled back. Nobody ever sees them, no lock of theirs conflicts with the application's, and the
next vacuum makes the space free again. :mod:`.freespace` tells which gaps were too small.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from memory.maintenance.scrubbing.freespace import read_remnants
from memory.maintenance.scrubbing.relations import Table, find_tables, vacuum
from memory.maintenance.scrubbing.session import Session

__all__ = ["FILLED", "overwrite"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Filler:
    """How to write rows: ``values`` may use ``size``, the bytes of the one column that varies."""

    columns: str
    values: str
    largest: int
    tenant: str = "'~'"


_ROW: Final = "'~', gen_random_uuid(), "
# A row of up to 2,032 bytes is stored in the table itself.
_FILLERS: Final = {
    "records": _Filler(
        columns="tenant_key, record_id, text", values=_ROW + "repeat('~', size)", largest=1880
    ),
    "record_subjects": _Filler(
        columns="tenant_key, record_id, subject_hash, subject_key",
        values=_ROW + "repeat('0', 64), repeat('~', size)",
        largest=1024,
    ),
    "provenance": _Filler(
        columns="derived_id, source_id, tenant_key",
        values="gen_random_uuid(), gen_random_uuid(), repeat('~', size)",
        largest=256,
        tenant="repeat('~', size)",
    ),
    "postings": _Filler(
        columns="tenant_key, record_id, term", values=_ROW + "repeat('~', size)", largest=128
    ),
    "artefacts": _Filler(
        columns="tenant_key, record_id, adapter, artefact_id",
        values=_ROW + "'~', repeat('~', size)",
        largest=1024,
    ),
    "purges": _Filler(
        columns="tenant_key, erasure_id, adapter, artefact_id",
        values=_ROW + "gen_random_uuid()::text, repeat('~', size)",
        largest=1024,
    ),
}

# Where it may be done: what they would write is rolled back all the same.
_SKIP_TRIGGERS: Final = """
    if (select r.rolsuper from pg_roles as r where r.rolname = current_user) then
        perform set_config('session_replication_role', 'replica', true);
    end if;"""

FILLED: Final = frozenset(_FILLERS)
"""Tables with what a person said, who it was about, or what it was called elsewhere."""

# Sixteenths of the largest row, with which a round begins.
_ROUNDS: Final = (16, 13, 11, 9, 7)

# A place for a row is looked up by what is free in units of 32 bytes: so rows are stored in
# multiples of that. How much a row takes beside its content is measured, once for a short one,
# whose length is kept in one byte, and once for a long one. A step of one size ends when its rows
# have to make the relation longer. What a trigger refuses has been written by then, which is as
# good as a rollback.
_FILL: Final = """
do $filler$
declare
    size int;
    bases int[] := '{}';
    stored int;
    before bigint;
    amount int;
    state text;
begin
    %(skip_triggers)s
    begin
        foreach size in array array[126 - 8 * %(number)s, 191 - 8 * %(number)s] loop
            continue when size > %(largest)s;
            perform set_config('app.current_tenant', %(tenant)s, true);
            insert into memory.%(table)s as t (%(columns)s) values (%(values)s)
            returning (pg_column_size(t.*) + 7) / 8 * 8 into stored;
            bases := bases || size - stored %% 32;
        end loop;
        raise sqlstate 'ME000';
    exception when others then
        get stacked diagnostics state = returned_sqlstate;
        if state not like 'ME%%' then raise; end if;
    end;
    for size in
        select distinct s.size from (
            select b - 32 * n as size from unnest(bases) as b, generate_series(0, 3) as n
            where b < 127
            union select b + 32 * n from unnest(bases) as b, generate_series(0, 60) as n
            where b > 127
            union select unnest(array[1, %(largest)s])
        ) as s where s.size between 1 and %(largest)s order by 1 desc
    loop
        amount := greatest(1, 8192 / (size + 64));
        perform set_config('app.current_tenant', %(tenant)s, true);
        loop
            before := pg_relation_size('memory.%(table)s');
            begin
                insert into memory.%(table)s (%(columns)s)
                select %(values)s from generate_series(1, amount);
                raise sqlstate 'ME000';
            exception when others then
                get stacked diagnostics state = returned_sqlstate;
                if state not like 'ME%%' then raise; end if;
            end;
            exit when pg_relation_size('memory.%(table)s') > before;
            amount := least(amount * 2, 10000);
        end loop;
    end loop;
end $filler$
"""

# A vector is kept out of line as it is, in pieces of 1,996 bytes, four of which fill a page, and a
# rest. A rest goes where the piece before it went, if there is room: so it follows four pieces that
# filled their page, and goes into a gap of another page, or, when there is none, makes a second new
# page, which three pieces and a fitting rest then fill for the next size to begin with.
# Steps are numbers of values and how much longer the relation may get before the next step: none of
# them is a usual number of dimensions, so no index takes them in.
_LONG_STEPS: Final = [(15464, 0), (494, 0), (494, -1), (494, -1), (494, -1)] + [
    step for k in range(61, -1, -1) for step in ((1998 + 8 * k, 8192), (1979 - 8 * k, -1))
]
_FILL_LONG: Final = f"""
do $filler$
declare
    long oid := (
        select c.reltoastrelid from pg_class as c where c.oid = 'memory.records'::regclass
    );
    step int[];
    before bigint;
    state text;
begin
    {_SKIP_TRIGGERS}
    perform set_config('app.current_tenant', '~', true);
    foreach step slice 1 in array array{[list(step) for step in _LONG_STEPS]} loop
        loop
            before := pg_relation_size(long);
            begin
                insert into memory.records (tenant_key, record_id, text, embedding)
                values ('~', gen_random_uuid(), '~', array_fill('1'::real, array[step[1]]));
                raise sqlstate 'ME000';
            exception when others then
                get stacked diagnostics state = returned_sqlstate;
                if state not like 'ME%' then raise; end if;
            end;
            exit when pg_relation_size(long) - before > step[2];
        end loop;
    end loop;
end $filler$
"""


async def overwrite(session: Session) -> None:
    """Write filler into the free space of the tables that hold content, and free it again.

    What a large row leaves of a gap may be too small for any other: a further round begins with
    smaller ones, so that the remnant lies elsewhere. Who may read the files knows whether that is
    needed.
    """
    wanted = FILLED
    for number, sixteenths in enumerate(_ROUNDS):
        tables = [table for table in await find_tables(session) if table.plain in wanted]
        for table in tables:
            await _fill(session, table, number, sixteenths)
        # Else the count of dead rows would be that of before the vacuum that follows.
        await session.fetch("select pg_stat_force_next_flush()")
        await vacuum(session, await find_tables(session))
        left = await read_remnants(session, tables)
        if left is not None:
            wanted = frozenset(left)
        if not wanted or (left is None and number == 1):
            break


async def _fill(session: Session, table: Table, number: int, sixteenths: int) -> None:
    filler = _FILLERS[table.plain]
    size = f"pg_table_size({table.oid}::oid::regclass)"
    names = {"table": table.plain, "skip_triggers": _SKIP_TRIGGERS, **asdict(filler)}
    largest = filler.largest * sixteenths // 16
    statement = _FILL % {**names, "largest": largest, "number": number}
    if table.pages:
        await session.step("overwrite", table.plain, statement, lock="ROW EXCLUSIVE", size=size)
    if table.plain == "records" and table.long_pages:
        await session.step(
            "overwrite_long", table.plain, _FILL_LONG, lock="ROW EXCLUSIVE", size=size
        )
