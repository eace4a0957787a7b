"""The processes of the soak's clients: started, killed and replaced, stopped."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from ground import Ground


class Clients:
    """Each has a name of its own, its successor another: a ledger has one writer."""

    def __init__(self, ground: Ground, folder: Path, tasks: int, pause: float) -> None:
        self._ground, self._folder, self._tasks, self._pause = ground, folder, tasks, pause
        self._running: list[subprocess.Popen[bytes]] = []
        self._started = 0
        self.ends: list[str] = []

    def start(self) -> None:
        self._started += 1
        name = f"client{self._started:03d}"
        with (self._folder / f"{name}.stderr").open("wb") as output:
            process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("client.py")),
                    str(self._folder),
                    name,
                    str(self._started),
                    self._ground.url("memory_app"),
                    self._ground.url("memory_operator"),
                    str(self._tasks),
                    str(self._pause),
                ],
                stderr=output,
            )
        self._running.append(process)

    def await_start(self) -> None:
        """Return once each of them is at work."""
        deadline = time.monotonic() + 120
        while len(list(self._folder.glob("*.ledger"))) < self._started:
            if time.monotonic() > deadline or self.ended():
                raise AssertionError(f"the clients do not start: {self.ended()}")
            time.sleep(0.1)

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL to one of them; another one takes its place."""
        process = chance.choice(self._running)
        self._running.remove(process)
        process.kill()
        process.wait()
        self.start()

    def ended(self) -> list[str]:
        """Those that have ended by themselves: none may."""
        return [
            f"a client ended with {p.returncode}" for p in self._running if p.poll() is not None
        ]

    def stop(self) -> None:
        """Let every life come to its end; who hangs is a finding."""
        self.ends += self.ended()
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 150
        for process in self._running:
            try:
                process.wait(timeout=max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.ends.append("a client did not stop")
            if process.returncode > 0:
                self.ends.append(f"a client stopped with {process.returncode}")
        for file in sorted(self._folder.glob("*.stderr")):
            self.ends += [f"{file.stem}: {line}" for line in file.read_text().splitlines()[-5:]]
