"""A server that a test may stop, kill and start again, and clients that it may kill."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

from memory import embedded
from servers import FAST

FORGETTING = Path(__file__).with_name("forgetting.py")


class Crashable:
    """An embedded server of the test's own. What is killed is waited for."""

    def __init__(self, server: embedded.Server) -> None:
        self.url = server.url
        self.superuser_url = server.superuser_url
        self.data = Path(server.data_directory)
        self._children: list[subprocess.Popen[bytes]] = []

    def _postmaster(self) -> psutil.Process:
        return psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))

    def kill(self) -> None:
        """SIGKILL to every process of the server, as a machine that loses power does."""
        postmaster = self._postmaster()
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._reap(processes)

    def stop(self, *, immediately: bool = False) -> None:
        """Shut down as an operator does; connections in use are ended (pg_ctl -m fast, or not)."""
        postmaster = self._postmaster()
        postmaster.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
        self._reap([postmaster])

    def runs(self) -> bool:
        """Whether the server is there; without room on its disk it may have ended by itself."""
        try:
            return self._postmaster().status() != psutil.STATUS_ZOMBIE
        except (FileNotFoundError, psutil.NoSuchProcess):
            return False

    def _reap(self, processes: list[psutil.Process]) -> None:
        for child in self._children:
            child.wait(timeout=30)
        self._children.clear()
        psutil.wait_procs(processes, timeout=30)

    def start(self) -> None:
        """Start again at once on the same data, with the settings of the first start."""
        program, *options = shlex.split((self.data / "postmaster.opts").read_text())
        command = [program, "-D", str(self.data), *options]
        user = self.data.owner() if os.geteuid() == 0 else None
        with (self.data / "log").open("ab") as log:
            child = subprocess.Popen(
                command, cwd=self.data, stdout=log, stderr=log, start_new_session=True, user=user
            )
        self._children.append(child)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.superuser_url).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "the server does not come back"
                time.sleep(0.02)
            else:
                return

    def close(self) -> None:
        """Leave a running server to be stopped by whoever started the first one."""
        self.stop()


@contextlib.contextmanager
def crashable() -> Iterator[Crashable]:
    running = embedded.serve(settings=FAST)
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        server = Crashable(runner.run(running.__aenter__()))
        try:
            yield server
        finally:
            server.close()
            runner.run(running.__aexit__(None, None, None))


class Forgetter:
    """Processes that call forget, each forked from one that has everything imported."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(FORGETTING), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, tenant: str, person: str) -> int:
        """Let a new process forget the person; return its id."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{tenant} {person}\n")
        self._process.stdin.flush()
        return int(self._line())

    def outcome(self) -> str:
        """``done`` or ``killed``, once the process has ended."""
        return self._line()

    def close(self) -> None:
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
