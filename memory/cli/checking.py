"""``memory check`` and ``memory verify``: what is stored, and what enforces it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from memory.cli.bars import steps
from memory.cli.files import lines, read_anchors
from memory.cli.printing import Json, as_json, print_line, table
from memory.cli.running import database_url, finish, pepper, run
from memory.maintenance.checking import check as check_rows
from memory.maintenance.checks.faults import CheckReport, Fault
from memory.maintenance.verify import verify_install
from memory.maintenance.walking import Progress
from memory.types import Check

__all__ = ["check", "verify"]


def check(
    tombstones: Annotated[
        Path | None, typer.Option(help="A stream of memory tombstones export.")
    ] = None,
    anchors: Annotated[
        Path | None, typer.Option(help="Positions kept elsewhere, as JSON lines.")
    ] = None,
    show_tenants: Annotated[
        bool, typer.Option("--show-tenants", help="Name tenants instead of numbering them.")
    ] = False,
    json: Json = False,
) -> None:
    """Look at every row of every tenant: what is missing, left over, or back again."""
    with steps() as progress:
        report = run(_check(tombstones, anchors, progress))
    numbers: dict[str, str] = {}
    for fault in report.faults:
        number = str(len(numbers) + 1)
        numbers.setdefault(fault.tenant_key, fault.tenant_key if show_tenants else number)
    if json:
        as_json(
            {
                "ok": report.ok,
                "tenants": report.tenants,
                "rows": report.rows,
                "faults": [_fault(fault, numbers[fault.tenant_key]) for fault in report.faults],
            }
        )
    else:
        _show(report, numbers)
    finish(not report.ok)


async def _check(tombstones: Path | None, anchors: Path | None, progress: Progress) -> CheckReport:
    options: dict[str, Any] = {
        "anchors": read_anchors(anchors),
        "subject_pepper": pepper(),
        "progress": progress,
    }
    if tombstones is None:
        return await check_rows(database_url(), **options)
    with lines(tombstones) as stream:
        return await check_rows(database_url(), tombstones=stream, **options)


def _fault(fault: Fault, tenant: str) -> dict[str, Any]:
    return {
        "code": fault.code,
        "severity": fault.severity,
        "tenant": tenant,
        "count": fault.count,
        "examples": list(fault.examples),
        "what": fault.what,
        "remedy": fault.remedy,
    }


def _show(report: CheckReport, tenants: dict[str, str]) -> None:
    errors = sum(fault.severity == "error" for fault in report.faults)
    found = f"{errors} errors and {len(report.faults) - errors} warnings found"
    looked = f"{report.rows} rows of {report.tenants} tenants looked at"
    print_line(f"{looked}: {found if report.faults else 'nothing found'}")
    if report.faults:
        table(
            "Found",
            ("code", "severity", "tenant", "count", "examples"),
            [
                (f.code, f.severity, tenants[f.tenant_key], f.count, "\n".join(f.examples))
                for f in report.faults
            ],
        )
    for code, fault in {fault.code: fault for fault in report.faults}.items():
        print_line(f"{code}: {fault.what}. {fault.remedy}")


def verify(json: Json = False) -> None:
    """Compare the installation with what the migrations build."""
    checks = run(_verify())
    broken = [item for item in checks if item.ok is False]
    if json:
        as_json(
            {
                "ok": not broken,
                "checks": [
                    {"property": item.property, "ok": item.ok, "detail": item.detail}
                    for item in checks
                ],
            }
        )
    else:
        unread = [item for item in checks if item.ok is None]
        print_line(f"{len(checks)} properties, {len(broken)} broken, {len(unread)} not readable")
        for title, items in (("Broken", broken), ("Not readable by this role", unread)):
            if items:
                table(title, ("property", "detail"), [(i.property, i.detail) for i in items])
    finish(bool(broken))


async def _verify() -> tuple[Check, ...]:
    return await verify_install(database_url())
