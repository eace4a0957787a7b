"""Artefacts, the claims on them, and what external indexes owe after an erasure."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0009"
down_revision = "memory_0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for trigger in ("unclaim", "artefact_fixed", "sources_exist"):
        op.execute(f"drop trigger {trigger} on memory.artefacts")
    for function in (
        "defer_purges",
        "settle_purges",
        "lock_purges",
        "lease_purges",
        "lock_artefacts",
        "artefact_removed",
        "artefact_added",
        "framed_hash",
    ):
        op.execute(f"drop function memory.{function}")
