"""The rows of filler that a scrub writes over what was deleted."""

from __future__ import annotations

import pytest

from memory.maintenance.scrubbing.overwrite import FILLED, FILLERS
from rawsql import Connection


@pytest.mark.parametrize("table", sorted(FILLED))
async def test_rows_of_filler_are_as_large_as_is_said(inspector: Connection, table: str) -> None:
    filler = FILLERS[table]
    transaction = inspector.transaction()
    await transaction.start()
    await inspector.execute("set local session_replication_role = replica")
    try:
        for size, stored in ((1, filler.smallest), (filler.longest, filler.largest)):
            row = await inspector.fetchval(
                f"insert into memory.{table} as t ({filler.columns})"
                f" select {filler.values} from (values ({size}, 1, {size})) as v (size, written, n)"
                " returning (pg_column_size(t.*) + 7) / 8 * 8"
            )
            assert row == stored
    finally:
        await transaction.rollback()
