"""``memory fold``: the counts that recall by keyword adds up."""

from __future__ import annotations

from memory.cli.printing import Json, as_json, print_line
from memory.cli.running import database_url, run
from memory.maintenance.counts import fold_counts

__all__ = ["fold"]


def fold(json: Json = False) -> None:
    """Fold what writers counted into one row per tenant; for a schedule, while they write."""
    folded = run(fold_counts(database_url()))
    if json:
        as_json({"folded": folded})
    else:
        print_line(f"{folded:,} folded")
