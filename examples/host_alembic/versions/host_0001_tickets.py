"""Tickets, each with the memory that was made of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "host_0001"
down_revision = None
branch_labels = ("host",)
# The foreign key needs memory's tables; every later host revision may rely on them too.
depends_on = "memory_0001"


def upgrade() -> None:
    op.create_table(
        "tickets",
        sa.Column("ticket_id", sa.BigInteger(), sa.Identity(), primary_key=True),
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("record_id", sa.UUID()),
        sa.Column("status", sa.Text(), server_default="open", nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_key", "record_id"],
            ["memory.records.tenant_key", "memory.records.record_id"],
            name="ticket_memory",
            ondelete="SET NULL (record_id)",
        ),
    )


def downgrade() -> None:
    op.drop_table("tickets")
