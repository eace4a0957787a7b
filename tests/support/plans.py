"""Plans of statements as they were run, and the switches of the planner to try them under."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rawsql import Connection

SWITCHES = (
    "seqscan",
    "indexscan",
    "indexonlyscan",
    "bitmapscan",
    "nestloop",
    "hashjoin",
    "mergejoin",
    "sort",
    "incremental_sort",
    "hashagg",
    "material",
    "memoize",
)
MODES = ("force_custom_plan", "force_generic_plan")


async def explained(
    connection: Connection, statement: str, values: Any, mode: str, *, before: str = ""
) -> dict[str, Any]:
    """The plan of a prepared statement as it was run, in a transaction after ``before``."""
    await connection.execute(f"set plan_cache_mode = {mode}")
    await connection.execute(f"prepare read as {statement}")
    arguments = ", ".join(map(literal, values))
    call = f"execute read({arguments})" if values else "execute read"
    try:
        async with connection.transaction():
            if before:
                await connection.execute(before)
            found = await connection.fetchval(
                f"explain (analyze, buffers, verbose, format json) {call}"
            )
    finally:
        await connection.execute("deallocate read")
    plan: dict[str, Any] = json.loads(found)[0]["Plan"]
    return plan


def literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        inner = ", ".join(json.dumps(str(item)) for item in value)
        return f"'{{{inner}}}'"
    return "'" + str(value).replace("'", "''") + "'"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
