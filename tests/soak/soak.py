"""Everything at once while everything goes wrong; then every promise is looked for.

    python tests/soak/soak.py --minutes 30 --json soak.json

Starts a server of its own on a small disk, PgBouncer in transaction mode before it, and clients,
processes with many tasks each, which remember, derive, recall, export, hold and forget people. By a
schedule backends and statements are cut off, server and pooler restarted and killed, clients killed
and the disk filled. Ends with 1 if a promise is broken or a client saw what is no error of the
library. ``--quick`` takes some twenty seconds and means nothing as a measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import paths  # noqa: F401 - before what is in tests/support
from clients import Clients
from figures import figures, table
from ground import Ground, ground
from judging import judge, prepare, settle
from ledger import account, entries
from mishaps import Mishaps


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Load and mishaps, then every promise")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=5, help="of each client")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between calls of a task")
    parser.add_argument("--every", type=float, default=20, help="seconds between mishaps")
    parser.add_argument("--disk", type=int, default=1500, help="megabytes of the server's disk")
    parser.add_argument("--postgres", type=int, choices=[16, 18], default=18)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="some twenty seconds in all")
    parser.add_argument("--json", type=Path, help="write the report here, too")
    return parser


async def load(place: Ground, folder: Path, given: argparse.Namespace) -> tuple[Any, ...]:
    """Start the clients, let things go wrong, leave them a quiet while, stop them."""
    clients = Clients(place, folder, given.tasks, given.pause)
    mishaps = Mishaps(place, clients, given.seed)
    for _ in range(given.clients):
        clients.start()
    await asyncio.to_thread(clients.await_start)
    started = time.monotonic()
    seconds = given.minutes * 60
    try:
        await mishaps.go_on(started + seconds * 0.9, given.every)
        await asyncio.sleep(max(0.0, started + seconds - time.monotonic()))
    finally:
        await mishaps.answers()
        await asyncio.to_thread(clients.stop)
    return clients, mishaps, started


async def soak(given: argparse.Namespace) -> dict[str, Any]:
    """Run it all and return the report."""
    folder = Path(tempfile.mkdtemp(prefix="soaked-"))
    try:
        before = os.getloadavg()
        async with ground(given.postgres, given.disk) as place:
            images = await prepare(place)
            clients, mishaps, started = await load(place, folder, given)
            took = time.monotonic() - started
            found = account(entries(folder))
            undone = await settle(place, folder, found)
            invariants = await judge(place, folder, found, images)
        return {
            "seconds": round(took, 1),
            "settings": {name: value for name, value in vars(given).items() if name != "json"},
            "load": [before, os.getloadavg()],
            "cpus": os.cpu_count(),
            "mishaps": mishaps.told,
            "not_simulated": mishaps.not_simulated,
            "figures": figures(found, started, took),
            "invariants": {
                **invariants,
                "clients": clients.ends,
                "mishaps": mishaps.failures,
                "after the end": undone,
            },
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    given = options().parse_args()
    # As an interrupt: the server, the pooler and the mount go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if given.quick:
        given.minutes, given.clients, given.tasks = 0.2, 2, 3
        given.every, given.disk, given.pause = 0.7, 300, 0.1
    report = asyncio.run(soak(given))
    sys.stdout.write("\n".join(table(report)) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    return int(any(report["invariants"].values()))


if __name__ == "__main__":
    sys.exit(main())
