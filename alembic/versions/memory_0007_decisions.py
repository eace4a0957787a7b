"""Decisions about a person: blocks, legal holds, and the erasures that a hold defers."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0007"
down_revision = "memory_0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in (
        "readmit",
        "complete_requests",
        "complete",
        "release",
        "hold",
        "seal_now",
        "delete_as",
        "spare",
        "request",
        "block",
        "decide",
    ):
        op.execute(f"drop function memory.{function}")
