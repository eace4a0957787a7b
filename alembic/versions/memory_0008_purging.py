"""What external indexes owe after an erasure, and how several processes share the work."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0008"
down_revision = "memory_0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in ("defer_purges", "settle_purges", "lease_purges"):
        op.execute(f"drop function memory.{function}")
