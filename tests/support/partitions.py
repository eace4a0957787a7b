"""The layout of partitions by hash of the tenant, made from the same migrations.

The four large tables are made partitioned as the migrations make them; everything that follows goes
to the parents. Then each partition is closed: whoever names one sees and changes nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import psycopg
from alembic import op

from memory import migrate

__all__ = ["PARTITIONED", "migrate_partitioned"]

PARTITIONED: Final = ("records", "record_subjects", "provenance", "postings")
_CLOSED: Final = """
    alter table memory.{part} enable row level security;
    alter table memory.{part} force row level security;
    create trigger by_name before insert or update or delete on memory.{part}
    for each statement execute function memory.refuse_change();
    create trigger no_truncate before truncate on memory.{part}
    for each statement execute function memory.refuse_truncate();
    alter table memory.{part} enable always trigger by_name;
    alter table memory.{part} enable always trigger no_truncate;
"""
_STORAGE: Final = re.compile(r"alter table memory\.(\w+) set (\(autovacuum\w+ = [\d.]+\))")


def migrate_partitioned(owner_url: str, parts: int) -> None:
    """Bring an empty database to head with so many partitions of each large table."""
    with _partitioning(parts):
        asyncio.run(migrate.upgrade(owner_url))
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for name in PARTITIONED:
            for part in _parts(name, parts):
                owner.execute(_CLOSED.format(part=part))


def _parts(name: str, parts: int) -> list[str]:
    return [f"{name}_p{number}" for number in range(parts)]


@contextmanager
def _partitioning(parts: int) -> Iterator[None]:
    create, execute = op.create_table, op.execute

    def create_table(name: str, *columns: Any, **options: Any) -> Any:
        if name not in PARTITIONED:
            return create(name, *columns, **options)
        made = create(name, *columns, postgresql_partition_by="hash (tenant_key)", **options)
        for number, part in enumerate(_parts(name, parts)):
            execute(
                f"create table memory.{part} partition of memory.{name}"
                f" for values with (modulus {parts}, remainder {number})"
            )
        return made

    def run(statement: Any, **options: Any) -> None:
        storage = _STORAGE.search(str(statement))
        # Storage parameters belong to the partitions.
        if storage is not None and storage[1] in PARTITIONED:
            for part in _parts(storage[1], parts):
                execute(f"alter table memory.{part} set {storage[2]}", **options)
        else:
            execute(statement, **options)

    with mock.patch.object(op, "create_table", create_table), mock.patch.object(op, "execute", run):
        yield
