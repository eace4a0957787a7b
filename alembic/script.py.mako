"""${message}.

Functions, triggers, policies and grants are in the file of the same name that ends in .sql.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from memory import ddl

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
