"""The column types and rules that every table shares."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKeyConstraint, MetaData, Text, text

__all__ = [
    "Key",
    "Time",
    "belongs",
    "bounded",
    "hashed",
    "hashed_often",
    "metadata",
    "now",
    "tenant",
]

metadata = MetaData(schema="memory")

# A libc upgrade reorders every other collation, and an index that misses a row misses an erasure.
Key = Text(collation="C")
Time = DateTime(timezone=True)
now = text("clock_timestamp()")


def tenant() -> Column[str]:
    """Return the column that every key begins with and every policy compares."""
    return Column("tenant_key", Key, nullable=False)


def bounded(column: str, most: int) -> CheckConstraint:
    """Return the rule that a key is neither empty nor longer than ``most`` bytes."""
    # A btree entry holds 2,704 bytes; an empty tenant is what an unset setting looks like.
    return CheckConstraint(
        f"{column} <> '' and octet_length({column}) <= {most}", name=f"{column}_bounded"
    )


def hashed(column: str = "subject_hash") -> CheckConstraint:
    """Return the rule that a column holds a SHA-256 in hexadecimal."""
    # Nothing but a hash fits: a phone number cannot be written here, whoever inserts.
    return CheckConstraint(f"{column} ~ '^[0-9a-f]{{64}}$'", name=f"{column}_is_hash")


def hashed_often(column: str = "subject_hash", *, or_empty: bool = False) -> CheckConstraint:
    """Return the same rule for columns that every write checks; a regular expression is slow."""
    rule = f"octet_length({column}) = 64 and translate({column}, '0123456789abcdef', '') = ''"
    if or_empty:
        rule = f"{column} = '' or {rule}"
    return CheckConstraint(rule, name=f"{column}_is_hash")


def belongs(column: str, name: str) -> ForeignKeyConstraint:
    """Return the foreign key from ``column`` to the record of the same tenant."""
    # Deferred and without action: the cascade still finds the edges it has to walk, and a delete
    # that bypasses the cascade fails at commit.
    return ForeignKeyConstraint(
        ["tenant_key", column],
        ["records.tenant_key", "records.record_id"],
        name=name,
        deferrable=True,
        initially="DEFERRED",
    )
