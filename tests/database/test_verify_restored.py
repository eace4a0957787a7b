"""A dump writes the catalogue down and a restore, or pg_upgrade, reads it back unchanged.

The server does not always print what it would read as the same: ``a between 1 and 2 and b`` comes
back as three conditions where there were two, and a row comparison as its parts.
"""

from __future__ import annotations

import asyncpg

from servers import Database

CHECKS = """
    select c.conrelid::regclass::text as owner, c.conname as name,
        pg_get_constraintdef(c.oid) as definition
    from pg_constraint as c
    where c.connamespace = 'memory'::regnamespace and c.contype = 'c'
    order by 1, 2
"""
TRIGGERS = """
    select t.tgrelid::regclass::text as owner, t.tgname as name,
        pg_get_triggerdef(t.oid) as definition
    from pg_trigger as t join pg_class as c on c.oid = t.tgrelid
    where c.relnamespace = 'memory'::regnamespace and not t.tgisinternal
    order by 1, 2
"""


async def test_checks_and_triggers_are_what_a_restore_makes_of_them(database: Database) -> None:
    connection = await asyncpg.connect(database.superuser_url)
    try:
        checks, triggers = await connection.fetch(CHECKS), await connection.fetch(TRIGGERS)
        assert checks
        assert triggers
        for owner, name, definition in checks:
            await connection.execute(f"alter table {owner} drop constraint {name}")
            await connection.execute(f"alter table {owner} add constraint {name} {definition}")
        for owner, name, definition in triggers:
            await connection.execute(f"drop trigger {name} on {owner}")
            await connection.execute(definition)
        assert await connection.fetch(CHECKS) == checks
        assert await connection.fetch(TRIGGERS) == triggers
    finally:
        await connection.close()
