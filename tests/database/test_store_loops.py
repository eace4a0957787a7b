"""A script that calls ``asyncio.run`` more than once, and two loops at the same time.

In a process of its own: a loop that ended leaves sockets behind, about which Python warns.
"""

from __future__ import annotations

import subprocess
import sys

from servers import Database

SCRIPT = """
import asyncio, sys, threading
from memory import InvalidInputError, Memory, PostgresStore
url, tenant = sys.argv[1:]
memory = Memory(PostgresStore(url), subject_pepper="pepper")
told = asyncio.run(memory.remember(tenant, text="Ann called", subject_keys="ann"))
assert asyncio.run(memory.get(tenant, record_id=told.record)) == told.record
assert asyncio.run(memory.forget(tenant, subject_key="ann")).complete
refused = []
def elsewhere():
    try:
        asyncio.run(memory.records(tenant))
    except InvalidInputError:
        refused.append(True)
async def here():
    await memory.records(tenant)
    thread = threading.Thread(target=elsewhere, daemon=True)
    thread.start()
    await asyncio.to_thread(thread.join, 10)
    await memory.close()
asyncio.run(here())
assert refused
"""


def test_one_run_after_another_and_never_two_at_once(shared: Database, tenant: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, shared.app_url, tenant]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
