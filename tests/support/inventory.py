"""What the permissions page lists of the installed schema, read from the catalogue."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from memory import migrate
from memory.urls import normalize_url

HOLDS: Final = {
    "alembic_version": "the revision",
    "artefact_claims": "hashes of what is registered, across tenants; reached by functions only",
    "artefacts": "**content**: ids in external indexes",
    "chain_heads": "the end of each chain of tombstones",
    "decisions": "blocks, holds, their ends: hashes and codes",
    "installation": "the check value of the pepper",
    "pending_evidence": "evidence until commit; empty otherwise",
    "postings": "**content**: the words of each record",
    "provenance": "which record was derived from which: ids",
    "purge_receipts": "what indexes confirmed: counts",
    "purges": "**content** until purged: ids that indexes owe",
    "record_subjects": "**content**: subject keys, and their hashes",
    "records": "**content**: text, metadata, vectors, record keys",
    "subjects": "hashes of people, blocked or held",
    "tenant_counts": "numbers of records and words",
    "tenants": "tenant keys",
    "tombstones": "the evidence: hashes, codes and counts",
}
"""What each table holds. A new table without an entry fails the test of the page."""

_TABLES: Final = """
    select c.relname from pg_class as c
    where c.relnamespace = 'memory'::regnamespace and c.relkind in ('r', 'p') order by 1
"""
_TABLE_GRANTS: Final = """
    select c.relname, lower(string_agg(a.privilege_type, ', ' order by a.privilege_type))
    from pg_class as c cross join lateral aclexplode(c.relacl) as a
    where c.relnamespace = 'memory'::regnamespace and a.grantee = %s::regrole
    group by 1 order by 1
"""
_COLUMN_GRANTS: Final = """
    select c.relname, lower(a.privilege_type), string_agg(t.attname, ', ' order by t.attnum)
    from pg_class as c join pg_attribute as t on t.attrelid = c.oid
    cross join lateral aclexplode(t.attacl) as a
    where c.relnamespace = 'memory'::regnamespace and a.grantee = %s::regrole
    group by 1, 2 order by 1, 2
"""
_FUNCTIONS: Final = """
    select distinct p.proname from pg_proc as p
    where p.pronamespace = 'memory'::regnamespace
        and not exists (
            select from pg_depend as d
            where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
        and (%(role)s::text is null
            or exists (select from aclexplode(p.proacl) as a where a.grantee = %(role)s::regrole))
    order by 1
"""
_REST: Final = {
    "policies": """
        select policyname, string_agg(tablename, ', ' order by tablename) from pg_policies
        where schemaname = 'memory' group by 1 order by 1
    """,
    "triggers": """
        select c.relname, string_agg(t.tgname, ', ' order by t.tgname)
        from pg_trigger as t join pg_class as c on c.oid = t.tgrelid
        where c.relnamespace = 'memory'::regnamespace and not t.tgisinternal
        group by 1 order by 1
    """,
    "indexes": """
        select i.tablename, string_agg(i.indexname, ', ' order by i.indexname) from pg_indexes as i
        where i.schemaname = 'memory' group by 1 order by 1
    """,
    "sequences": """
        select 'identity columns', string_agg(c.relname, ', ' order by c.relname) from pg_class as c
        where c.relnamespace = 'memory'::regnamespace and c.relkind = 'S'
    """,
}

Session = psycopg.Connection[Any]


def tables(session: Session, app: str) -> str:
    """Return each table, what it holds and what the application may do there, as a table."""
    whole: dict[str, str] = dict(session.execute(_TABLE_GRANTS, [app]).fetchall())
    parts: dict[str, list[str]] = {}
    for table, verb, _ in session.execute(_COLUMN_GRANTS, [app]):
        parts.setdefault(table, []).append(f"{verb} (columns)")
    lines = ["| table | holds | the application may |", "|---|---|---|"]
    for (table,) in session.execute(_TABLES):
        rights = ", ".join(filter(None, [whole.get(table, ""), *parts.get(table, [])]))
        lines.append(f"| `{table}` | {HOLDS[table]} | {rights or 'nothing'} |")
    return "\n".join(lines)


def functions(session: Session, roles: Mapping[str, str]) -> str:
    """Return the functions by who may call them: ``roles`` names each kind's role."""
    callable_by = {
        kind: {name for (name,) in session.execute(_FUNCTIONS, {"role": role})}
        for kind, role in roles.items()
    }
    everything = {name for (name,) in session.execute(_FUNCTIONS, {"role": None})}
    lines = ["| may call | functions |", "|---|---|"]
    seen: set[str] = set()
    for kind, names in callable_by.items():
        lines.append(f"| {kind} | {_listed(names - seen)} |")
        seen |= names
    lines.append(f"| nobody but the owner | {_listed(everything - seen)} |")
    return "\n".join(lines)


def rest(session: Session) -> str:
    """Return policies, triggers, indexes and sequences, by name."""
    lines = []
    for kind, query in _REST.items():
        lines.append(f"{kind}:")
        lines += [f"  {name}: {listed}" for name, listed in session.execute(query)]
    return "\n".join(["```text", *lines, "```"])


def grants(session: Session, role: str, shown: str) -> str:
    """Return the GRANT statements that give what ``role`` has, for a role called ``shown``."""
    lines = [f"grant usage on schema memory to {shown};"]
    for table, rights in session.execute(_TABLE_GRANTS, [role]):
        lines.append(f"grant {rights} on memory.{table} to {shown};")
    for table, verb, columns in session.execute(_COLUMN_GRANTS, [role]):
        line = f"grant {verb} ({columns}) on memory.{table} to {shown};"
        lines += textwrap.wrap(line, 100, subsequent_indent="    ")
    names = [name for (name,) in session.execute(_FUNCTIONS, {"role": role})]
    listed = ",\n    ".join(f"memory.{name}" for name in names)
    lines.append(f"grant execute on function\n    {listed}\n    to {shown};")
    return "\n".join(["```sql", *lines, "```"])


def locks(owner_url: str) -> str:
    """Migrate an empty database revision by revision; return what each locked of what was there."""
    url = normalize_url(owner_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool)
    history = ScriptDirectory.from_config(_config()).walk_revisions()
    lines = ["| revision | strongest lock | on |", "|---|---|---|"]
    for revision in reversed([script.revision for script in history]):
        with engine.begin() as connection:
            mode, names = _strongest(connection, revision)
        where = f"all {len(names)} tables" if len(names) > 8 else _listed(names)
        lines.append(f"| `{revision}` | {mode} | {where} |")
    engine.dispose()
    return "\n".join(lines)


_MODES: Final = ("ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock")
_THERE: Final = """
    select array_agg(c.oid::bigint) from pg_class as c
    where c.relnamespace not in ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
"""
_HELD: Final = """
    select c.relname, l.mode from pg_locks as l join pg_class as c on c.oid = l.relation
    where l.pid = pg_backend_pid() and c.oid::bigint = any(:there) and l.mode = any(:modes)
"""


def _strongest(connection: Connection, revision: str) -> tuple[str, set[str]]:
    """Apply a revision; return the strongest lock that blocks writers, and on what."""
    there = connection.scalar(text(_THERE)) or []
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
    held = connection.execute(text(_HELD), {"there": there, "modes": list(_MODES)}).all()
    strongest = max((_MODES.index(mode) for _, mode in held), default=None)
    if strongest is None:
        return "none", set()
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", _MODES[strongest]).removesuffix(" Lock").upper()
    return words, {name for name, mode in held if mode == _MODES[strongest]}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrate.location()))
    return config


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "-"
