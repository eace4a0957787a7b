"""The net effect of all revisions, as text that a reviewer reads in the diff.

After a deliberate change: MEMORY_REGENERATE_GOLDEN=1 python -m pytest tests/migration
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

from servers import Database, Postgres


def test_no_revision_changes_the_database_unseen(
    any_server: Postgres, read_catalog: Callable[[Database], str], root: Path, regenerate: bool
) -> None:
    golden = root / "tests" / "golden" / "catalog.txt"
    with any_server.migrated() as database:
        catalog = read_catalog(database)
        if regenerate and any_server.version == 18:
            golden.write_text(catalog, encoding="utf-8")
    committed = golden.read_text(encoding="utf-8").splitlines()
    difference = list(unified_diff(committed, catalog.splitlines(), "golden", "now", lineterm=""))
    assert not difference, "\n".join(difference)


def test_the_catalogue_would_show_a_disabled_trigger_a_grant_and_a_policy(
    database: Database, read_catalog: Callable[[Database], str], psql: Callable[[str, str], None]
) -> None:
    before = read_catalog(database)
    for damage in (
        "alter table memory.records disable trigger user",
        f"grant delete on memory.tombstones to {database.role('host')}",
        "create policy open on memory.records using (true)",
        "alter table memory.records no force row level security",
        "alter table memory.records alter column text set statistics 100",
        "alter table memory.records drop constraint records_pkey cascade",
        "create function memory.extra() returns int language sql as 'select 1'",
    ):
        psql(database.superuser_url, f"{damage};")
        after = read_catalog(database)
        assert after != before, damage
        before = after
