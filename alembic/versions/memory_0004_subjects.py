"""Rules of links: whom a record is about, and artefacts made from it."""

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
    for trigger, table in (
        ("admit", "record_subjects"),
        ("sources_exist", "artefacts"),
        ("artefact_fixed", "artefacts"),
    ):
        op.execute(f"drop trigger {trigger} on memory.{table}")
    for function in (
        "write_records",
        "artefact_added",
        "pass_on",
        "link_added",
    ):
        op.execute(f"drop function memory.{function}")
