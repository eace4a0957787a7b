"""What an installation consists of, as it is."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0012"
down_revision = "memory_0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in (
        "table_offences",
        "catalogue_offences",
        "catalogue",
        "grants",
        "guarded",
    ):
        op.execute(f"drop function memory.{function}")
