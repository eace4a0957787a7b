"""Whether an installation still enforces what it promises."""

from __future__ import annotations

import re

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory import ddl, migrate
from memory.database import OwnAccess, fetch
from memory.engines import open_engine
from memory.types import Check

__all__ = ["verify_install"]

_FUNCTION = re.compile(
    r"create (?:or replace )?function memory\.(?P<name>\w+)\(.*?\$(?P<tag>\w*)\$"
    r"(?P<body>.*)\$(?P=tag)\$\Z",
    re.DOTALL,
)


async def verify_install(engine_or_url: AsyncEngine | URL | str) -> tuple[Check, ...]:
    """Compare the database with what the migrations build; read only, sorted by property.

    The rows of the SQL function ``memory.verify_install()``, and one more that needs no trust in
    it: ``functions_as_packaged`` compares the source of every function, that one included, with
    this package. Run it as the owner of the tables, as a superuser, who may read everything, or as
    a role with ``memory.grant_auditor``.

    Raises ``InstallError`` if the schema or the privilege is missing, ``InvalidInputError`` for a
    URL that cannot be used and ``StoreUnavailableError`` if the database cannot be reached.

    >>> import memory
    >>> checks = await memory.verify_install(owner_url)
    >>> broken = [check for check in checks if check.ok is False]
    >>> all(check.detail for check in broken)  # what breaks each
    True
    """
    if isinstance(engine_or_url, AsyncEngine):
        return await OwnAccess(engine_or_url).single(_checks)
    engine = open_engine(engine_or_url)
    try:
        return await OwnAccess(engine).single(_checks)
    finally:
        await engine.dispose()


async def _checks(connection: AsyncConnection) -> tuple[Check, ...]:
    rows = await fetch(connection, "select property, ok, detail from memory.verify_install()")
    checks = [Check(property=row.property, ok=row.ok, detail=row.detail) for row in rows]
    checks.append(await _as_packaged(connection))
    return tuple(sorted(checks, key=lambda check: check.property))


async def _as_packaged(connection: AsyncConnection) -> Check:
    """Compare function bodies with the migrations in this package."""
    rows = await fetch(
        connection,
        "select p.proname::text, p.prosrc from pg_catalog.pg_proc as p"
        " where p.pronamespace = pg_catalog.to_regnamespace('memory') and not exists ("
        "select from pg_catalog.pg_depend as d"
        " where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass"
        " and d.objid = p.oid and d.deptype = 'e')",
    )
    installed = {(row.proname, row.prosrc) for row in rows}
    different = sorted({name for name, _ in installed ^ _packaged()})
    return Check(property="functions_as_packaged", ok=not different, detail=", ".join(different))


def _packaged() -> set[tuple[str, str]]:
    """Read each function's name and newest body from the migrations."""
    bodies: dict[str, str] = {}
    for file in sorted((migrate.location() / "versions").glob("memory_*.sql")):
        for statement in ddl.split(file.read_text(encoding="utf-8")):
            found = _FUNCTION.search(statement)
            if found:
                bodies[found["name"]] = found["body"]
    return set(bodies.items())
