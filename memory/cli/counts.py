"""``memory fold``: the counts that recall by keyword adds up."""

from __future__ import annotations

from typing import Annotated

import typer

from memory.cli.running import as_json, database_url, print_line, run
from memory.maintenance.counts import fold_counts

__all__ = ["fold"]


def fold(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fold what writers counted into one row per tenant; for a schedule, while they write."""
    folded = run(fold_counts(database_url()))
    if json:
        as_json({"folded": folded})
    else:
        print_line(f"{folded:,} folded")
