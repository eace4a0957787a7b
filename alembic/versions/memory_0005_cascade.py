"""The cascade: a DELETE takes everything derived with it and leaves evidence."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0005"
down_revision = "memory_0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop trigger erase on memory.records")
    for function in (
        "first_places",
        "cascade_depth",
        "witness",
        "label",
        "settle",
        "closure",
        "delete_records",
        "lock_records",
        "erase",
    ):
        op.execute(f"drop function memory.{function}")
