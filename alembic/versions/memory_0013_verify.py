"""Checking an installation against what was released."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0013"
down_revision = "memory_0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in (
        "revision",
        "grant_auditor",
        "verify_install",
        "installation_state",
        "access_offences",
        "index_offences",
        "constraint_offences",
    ):
        op.execute(f"drop function memory.{function}")
