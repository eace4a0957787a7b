"""Backups of a test's database, and what is done past its triggers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import psycopg

from servers import Database

TABLES = (
    "records",
    "record_subjects",
    "provenance",
    "postings",
    "artefacts",
    "tombstones",
    "purges",
    "pending_evidence",
    "tenant_counts",
    "chain_heads",
    "decisions",
    "subjects",
)


@contextlib.contextmanager
def backup(database: Database) -> Iterator[Database]:
    """A copy of the database as it is now: nobody may be connected to it."""
    name = f"{database.name}_backup"
    with psycopg.connect(database.server.url("superuser", "postgres"), autocommit=True) as admin:
        admin.execute(
            f"create database {name} template {database.name}"
            f" owner {database.role('owner')} strategy file_copy"
        )
        try:
            yield replace(database, name=name)
        finally:
            admin.execute(f"drop database {name} with (force)")


def damage(database: Database, *statements: str) -> None:
    """Run statements as a superuser with every trigger and foreign key off."""
    with psycopg.connect(database.superuser_url) as superuser:
        for table in TABLES:
            superuser.execute(f"alter table memory.{table} disable trigger all")
        for statement in statements:
            superuser.execute(statement)
        for table in TABLES:
            superuser.execute(f"alter table memory.{table} enable trigger all")
