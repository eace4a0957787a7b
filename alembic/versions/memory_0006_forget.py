"""Erasing a person in one call."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0006"
down_revision = "memory_0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in (
        "forget",
        "owing",
        "subjects_of",
        "count_closure",
        "lock_closure",
        "strays",
        "roots",
    ):
        op.execute(f"drop function memory.{function}")
