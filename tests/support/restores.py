"""Backups of a test's database, and what is done past its triggers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import psycopg

import memory
from memory import Memory, PostgresStore, TenantMemory
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


def opened(database: Database) -> Memory:
    """A memory on the database, as the application."""
    return Memory(PostgresStore(database.app_url), subject_pepper="p")


async def stream(database: Database) -> list[str]:
    """The lines of all its tombstones."""
    return [line async for line in memory.export_tombstones(database.owner_url)]


async def codes(database: Database, lines: list[str] | None = None) -> set[str]:
    """What a check finds."""
    report = await memory.check(database.owner_url, tombstones=lines)
    return {fault.code for fault in report.faults}


async def texts(home: TenantMemory) -> set[str]:
    """The texts of all that a tenant holds."""
    return {record.text for record in await home.records(limit=1000)}
