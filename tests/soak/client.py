"""One client of the soak, a process: tasks that live through people, until it is told to stop.

Arguments: the folder of the ledgers, a name, a seed, the application's and the operator's URL
through the pooler, the number of tasks, the pause between calls in seconds.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

import paths  # noqa: F401 - before what is in tests/support
from calling import Client, LostError
from ledger import Ledger
from lives import Life
from memory import MemoryServiceError


async def main(
    folder: str, name: str, seed: str, app: str, operator: str, tasks: str, pause: str
) -> None:
    logging.disable(logging.CRITICAL)
    ledger = Ledger(Path(folder), name)
    client = Client(ledger, Path(folder), int(seed), (app, operator))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.stopping.set)

    async def live() -> None:
        while not client.stopping.is_set():
            try:
                await Life(client, float(pause)).live()
            except LostError:
                continue
            except MemoryServiceError as error:
                client.violation(f"a life ended with {type(error).__name__}: {error}")

    async with asyncio.TaskGroup() as group:
        group.create_task(client.measure())
        group.create_task(client.chores(float(pause)))
        for _ in range(int(tasks)):
            group.create_task(live())
    await client.app.close()
    await client.operator.close()
    ledger.note("stopped")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
