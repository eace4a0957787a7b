"""Python programs that start at once: forked from a process that has the library imported.

A start of ``python -m memory.cli`` spends nearly all its time on imports. What starts here is a
process as real, with its own pid, signals, files, environment and end; but what lies beneath the
command was imported before it, so that each file of tests has a start from nothing too.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

_PRELOADED = ("memory.cli.app", "alembic.config", "psycopg")


class Forked:
    """A running program: so much of ``subprocess.Popen`` as the tests use."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self.pid = self._told()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            self.returncode = self._told()
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _told(self) -> int:
        told = self._status.recv(4)
        assert told, "the process that forks has gone"
        return int(struct.unpack("i", told)[0])


def start(
    module: str,
    arguments: Sequence[str],
    files: Sequence[int],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    terminal: bool = False,
) -> Forked:
    """Run a module as ``python -m`` does, on three files, which may be a terminal of its own."""
    cwd = cwd or Path.cwd()
    asked = {"module": module, "arguments": [*arguments], "env": {**env}, "cwd": str(cwd)}
    status, theirs = socket.socketpair()
    with theirs:
        message = json.dumps(asked | {"terminal": terminal}).encode()
        socket.send_fds(_server(), [message], [*files, theirs.fileno()])
    return Forked(status)


def run(
    module: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    given: bytes = b"",
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """Run a module to its end in a pipeline, as ``subprocess.run`` would."""
    (stdin, give), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
    try:
        process = start(module, arguments, (stdin, stdout, stderr), env=env, cwd=cwd)
    finally:
        for file in (stdin, stdout, stderr):
            os.close(file)
    with ThreadPoolExecutor(3) as pool:
        pool.submit(_write, give, given)
        said = [pool.submit(_read, file) for file in (out, err)]
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess((module, *arguments), code, *(one.result() for one in said))


def _write(file: int, given: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(file, "wb") as pipe:
        pipe.write(given)


def _read(file: int) -> bytes:
    with os.fdopen(file, "rb") as pipe:
        return pipe.read()


@functools.cache
def _server() -> socket.socket:
    """Start the process that forks; it ends when this one does, however that ends."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    def end() -> None:
        control.close()
        process.wait()

    atexit.register(end)
    return control


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork for whatever is asked, and in that process return it; None at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for who asks
    while True:
        message, files, *_ = socket.recv_fds(control, 1 << 20, 4)
        if not message:
            return None
        asked: dict[str, Any] = json.loads(message)
        if os.fork() == 0:
            control.close()
            return _watched(asked, files)
        for file in files:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _watched(asked: dict[str, Any], files: list[int]) -> dict[str, Any]:
    """Fork the program, which returns; tell its pid and then its end, as the one that may."""
    *standard, status = files
    pid = os.fork()
    if pid:
        for file in standard:
            os.close(file)
        os.write(status, struct.pack("i", pid))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(status, struct.pack("i", code))
        os._exit(0)
    os.close(status)
    if asked["terminal"]:
        os.setsid()
        fcntl.ioctl(standard[0], termios.TIOCSCTTY, 0)
    for number, file in enumerate(standard):
        os.dup2(file, number)
    for file in {*standard} - {0, 1, 2}:
        os.close(file)
    return asked


def _become(asked: dict[str, Any]) -> None:
    """Be as a Python that has just been started, from a shell that ignores no signal."""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[0] = asked["cwd"]
    sys.argv = [asked["module"], *asked["arguments"]]
    sys.stdin = _opened(sys.stdin, 0, "r")
    sys.stdout = _opened(sys.stdout, 1, "w")
    sys.stderr = _opened(sys.stderr, 2, "w", buffering=1)
    runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)


def _opened(like: TextIO, number: int, mode: str, buffering: int = -1) -> TextIO:
    """Open a standard stream; where it is a terminal Python buffers by line of its own accord."""
    given = {"encoding": like.encoding, "errors": like.errors, "closefd": False}
    return open(number, mode, buffering, **given)


def _preload() -> None:
    sys.path.insert(0, str(Path.cwd()))
    for name in _PRELOADED:
        # Without the extra it needs, the program says so itself.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    # The command's own modules look at the terminal when they are imported.
    for name in [name for name in sys.modules if name.startswith("memory.cli")]:
        del sys.modules[name]
    gc.freeze()


if __name__ == "__main__":
    _preload()
    asked = _serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        _become(asked)
