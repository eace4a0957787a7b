"""Free space in tables, written over by rows that are never committed.

VACUUM makes the space of a dead row free and leaves its bytes. The server has no command that
clears them but those that write the table anew under an exclusive lock. New rows overwrite them,
though: so rows of filler are inserted, largest first, until every gap that can take one has one,
and rolled back. Nobody ever sees them, no lock of theirs conflicts with the application's, and the
next vacuum makes the space free again. :mod:`.freespace` tells which gaps were too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from memory.maintenance.scrubbing.freespace import Left, may_read, read_remnants
from memory.maintenance.scrubbing.placing import descending, plan
from memory.maintenance.scrubbing.relations import Table, find_tables, vacuum
from memory.maintenance.scrubbing.session import Session
from memory.maintenance.scrubbing.wal import checkpoint

__all__ = ["FILLED", "overwrite", "overwrite_gaps"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Filler:
    """How to write rows: ``values`` may use ``size``, the bytes of the one column that varies.

    ``longest`` is the largest such size, ``smallest`` and ``largest`` are what a row takes.
    """

    columns: str
    values: str
    longest: int
    smallest: int
    largest: int
    tenant: str = "'~'"


# Not random: a fragment of one is known for filler, and an index takes them in at one place.
_KEY: Final = "('7e7e7e7e-7e7e-7e7e-7e7e-' || lpad(to_hex(written + n), 12, '0'))::uuid"
_ROW: Final = f"'~', {_KEY}, "
# A row of up to 2,032 bytes is stored in the table itself.
FILLERS: Final = {
    "records": Filler(
        columns="tenant_key, record_id, text",
        values=_ROW + "repeat('~', size)",
        longest=1880,
        smallest=128,
        largest=2008,
    ),
    "record_subjects": Filler(
        columns="tenant_key, record_id, subject_hash, subject_key",
        values=_ROW + "repeat('0', 64), repeat('~', size)",
        longest=1024,
        smallest=112,
        largest=1144,
    ),
    "provenance": Filler(
        columns="derived_id, source_id, tenant_key",
        values=f"{_KEY}, {_KEY.replace('-7e7e-', '-7e7d-', 1)}, repeat('~', size)",
        longest=256,
        smallest=64,
        largest=320,
        tenant="repeat('~', size)",
    ),
    "postings": Filler(
        columns="tenant_key, record_id, term",
        values=_ROW + "repeat('~', size)",
        longest=128,
        smallest=56,
        largest=184,
    ),
    "artefacts": Filler(
        columns="tenant_key, record_id, adapter, artefact_id",
        values=_ROW + "'~', repeat('~', size)",
        longest=1024,
        smallest=56,
        largest=1080,
    ),
    "purges": Filler(
        columns="tenant_key, erasure_id, adapter, artefact_id",
        values=_ROW + f"{_KEY}::text, repeat('~', size)",
        longest=1024,
        smallest=120,
        largest=1152,
    ),
}

# Where it may be done: what they would write is rolled back all the same.
_SKIP_TRIGGERS: Final = """
    if (select r.rolsuper from pg_roles as r where r.rolname = current_user) then
        perform set_config('session_replication_role', 'replica', true);
    end if;"""

FILLED: Final = frozenset(FILLERS)
"""Tables with what a person said, who it was about, or what it was called elsewhere."""

_PASSES: Final = 4
_ROUNDS: Final = 3

# How much a row takes beside its content is measured, once for a short one, whose length is kept in
# one byte, and once for a long one. A step of one size ends when its rows have to make the relation
# longer. What a trigger refuses has been written by then, which is as good as a rollback.
_FILL: Final = """
do $filler$
declare
    size int;
    stored int;
    wanted int;
    short_by int;
    long_by int;
    written bigint := 1;
    first bigint;
    before bigint;
    amount int;
    state text;
begin
    %(skip_triggers)s
    begin
        foreach size in array array[126, 130] loop
            continue when size > %(longest)s;
            perform set_config('app.current_tenant', %(tenant)s, true);
            insert into memory.%(table)s as t (%(columns)s)
            select %(values)s from generate_series(size, size) as n
            returning (pg_column_size(t.*) + 7) / 8 * 8 into stored;
            if size = 126 then
                short_by := stored - size;
            else
                long_by := stored - size;
            end if;
        end loop;
        raise sqlstate 'ME000';
    exception when others then
        get stacked diagnostics state = returned_sqlstate;
        if state not like 'ME%%' then raise; end if;
    end;
    foreach wanted in array array%(sizes)s loop
        size := greatest(wanted - short_by, 1);
        if size > 126 then
            size := least(greatest(coalesce(wanted - long_by, 126), 126), %(longest)s);
        end if;
        amount := greatest(1, 8192 / wanted);
        first := written;
        perform set_config('app.current_tenant', %(tenant)s, true);
        loop
            before := pg_relation_size('memory.%(table)s');
            begin
                insert into memory.%(table)s (%(columns)s)
                select %(values)s from generate_series(1, amount) as n;
                raise sqlstate 'ME000';
            exception when others then
                get stacked diagnostics state = returned_sqlstate;
                if state not like 'ME%%' then raise; end if;
            end;
            written := written + amount;
            exit when pg_relation_size('memory.%(table)s') > before;
            amount := least(greatest(amount, (written - first) / 4), 10000);
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


async def overwrite(session: Session, *, twice: bool) -> None:
    """Write filler into the free space of the tables that hold content, and free it again.

    ``twice`` for who cannot read what was left: the second time with rows as small as can be, whose
    line pointers cover what large ones left.
    """
    for again in (False, True) if twice else (False,):
        tables = await _filled(session)
        for table in tables:
            filler = FILLERS[table.plain]
            if table.pages:
                await _fill(session, table, filler.smallest if again else filler.largest)
            if table.long_pages:
                await _fill_long(session, table)
        await _free(session, tables)


async def overwrite_gaps(session: Session) -> list[Left] | None:
    """Read what is left, write into the gaps that a row can reach, and return what remains.

    The files must be what the server's buffers are. None for a role that may not read them.
    """
    if not await may_read(session):
        return None
    tables = await _filled(session)
    left = await read_remnants(session, tables)
    for _ in range(_ROUNDS):
        concerned = {item.table: item for item in left}
        tables = [table for table in await _filled(session) if table.plain in concerned]
        done = [await _fill_gaps(session, table, concerned[table.plain]) for table in tables]
        if not any(done) or not await checkpoint(session):
            break
        left = await read_remnants(session, tables)
    return left


async def _fill_gaps(session: Session, table: Table, left: Left) -> bool:
    filler = FILLERS[table.plain]
    firsts = plan(left.gaps, filler.smallest, filler.largest, passes=_PASSES)
    for first in firsts:
        await _fill(session, table, first)
        await _free(session, [table])
    if left.long_gaps:
        await _fill_long(session, table)
        await _free(session, [table])
    return bool(firsts or left.long_gaps)


async def _filled(session: Session) -> list[Table]:
    return [table for table in await find_tables(session) if table.plain in FILLED]


async def _free(session: Session, tables: Sequence[Table]) -> None:
    # Else the count of dead rows would be that of before the vacuum.
    await session.fetch("select pg_stat_force_next_flush()")
    await vacuum(session, tables)


async def _fill(session: Session, table: Table, first: int) -> None:
    filler = FILLERS[table.plain]
    statement = _FILL % {
        **asdict(filler),
        "table": table.plain,
        "skip_triggers": _SKIP_TRIGGERS,
        "sizes": descending(first, filler.smallest),
    }
    await session.step("overwrite", table.plain, statement, lock="ROW EXCLUSIVE")


async def _fill_long(session: Session, table: Table) -> None:
    await session.step("overwrite_long", table.plain, _FILL_LONG, lock="ROW EXCLUSIVE")
