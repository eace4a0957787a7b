"""Rules of links: whom a record is about, and what derived records inherit."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0004"
down_revision = "memory_0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop trigger admit on memory.record_subjects")
    for function in (
        "write_records",
        "held_among",
        "flag_records",
        "pass_on",
        "link_added",
    ):
        op.execute(f"drop function memory.{function}")
