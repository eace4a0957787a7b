"""What an installation consists of, as it was released."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0011"
down_revision = "memory_0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop function memory.manifest")
