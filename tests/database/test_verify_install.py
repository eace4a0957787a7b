"""Every property of verify_install turns when an installation is damaged in that respect.

Each damage is done by a superuser in a transaction that is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from damages import ALLOWED, DAMAGES, RECORDS, Damage
from servers import Database, Postgres


@pytest.fixture(scope="module")
def sound(server: Postgres) -> Iterator[Database]:
    """An installation with nothing wrong: the role that bypasses policies may not use it."""
    with server.migrated() as database:
        with psycopg.connect(database.superuser_url) as superuser:
            superuser.execute(f"drop owned by {database.role('bypass')}")
            superuser.execute(f"grant create on schema public to {database.role('owner')}")
        yield database


@pytest.fixture(scope="module")
def session(sound: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(sound.superuser_url) as connection:
        yield connection


@pytest.fixture(scope="module")
def false_before(session: psycopg.Connection[Any]) -> set[str]:
    """Nothing; where it is not, test_verify_manifest.py says so, and not every test here."""
    found = untrue(session)
    session.rollback()
    return found


@pytest.fixture
def damaged(sound: Database, session: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """The superuser's session; what is done in it is undone."""
    yield session
    session.rollback()


def run(connection: psycopg.Connection[Any], script: str, database: Database) -> None:
    kinds = ("owner", "app", "operator", "bypass", "host")
    names = {kind: sql.Identifier(database.role(kind)).as_string() for kind in kinds}
    for name, role in names.items():
        script = script.replace(f"'{{{name}}}'", f"'{database.role(name)}'")
        script = script.replace(f"{{{name}}}", role)
    connection.execute(script.replace("{database}", database.name))


def verified(connection: psycopg.Connection[Any]) -> dict[str, tuple[bool | None, str]]:
    rows = connection.execute("select property, ok, detail from memory.verify_install()").fetchall()
    found = {row[0]: (row[1], row[2]) for row in rows}
    assert len(found) == len(rows)
    return found


def untrue(connection: psycopg.Connection[Any]) -> set[str]:
    return {name for name, (ok, _) in verified(connection).items() if ok is not True}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.turns}: {damage.by[:60]}")
def test_damage_turns_its_property_and_no_other(
    damaged: psycopg.Connection[Any], sound: Database, false_before: set[str], damage: Damage
) -> None:
    run(damaged, damage.by, sound)
    found = verified(damaged)
    false = {name for name, (ok, _) in found.items() if ok is False}
    assert false - false_before == set(damage.turns.split())
    assert None not in {ok for ok, _ in found.values()}
    assert all(found[name][1] for name in damage.turns.split())


@pytest.mark.parametrize("change", ALLOWED, ids=lambda change: change[:60])
def test_what_weakens_nothing_turns_no_property(
    damaged: psycopg.Connection[Any], sound: Database, false_before: set[str], change: str
) -> None:
    run(damaged, change, sound)
    assert untrue(damaged) - false_before == set()


def test_every_property_has_a_damage_that_turns_it(session: psycopg.Connection[Any]) -> None:
    turned = {name for damage in DAMAGES for name in damage.turns.split()}
    # Whether pgvector is there is told and not judged.
    assert set(verified(session)) - turned == {"vector_search"}
    session.rollback()


def test_constraints_that_are_not_enforced_turn_on_18(
    damaged: psycopg.Connection[Any], sound: Database, server: Postgres, false_before: set[str]
) -> None:
    if server.version < 18:
        pytest.skip("NOT ENFORCED came with PostgreSQL 18")
    run(
        damaged,
        "alter table memory.provenance alter constraint provenance_source not enforced",
        sound,
    )
    assert untrue(damaged) - false_before == {"foreign_keys_enforced", "foreign_keys_validated"}


def test_no_detail_quotes_what_is_stored(damaged: psycopg.Connection[Any], sound: Database) -> None:
    run(
        damaged,
        f"{RECORDS}; alter table memory.records alter column text set statistics 100;"
        " insert into memory.tenants values ('dana-tenant');"
        " analyze memory.records; alter role {app} set app.current_tenant = 'dana-tenant'",
        sound,
    )
    found = verified(damaged)
    assert found["no_preset_tenant"][0] is False
    assert found["no_statistics_of_content"][0] is False
    details = " ".join(detail for _, detail in found.values()).lower()
    assert "dana" not in details
