"""A forked program finds what one that was started finds, and ends as it does."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forking

ENV = {**os.environ, "GIVEN": "to the program"}
# What a program can see of how it was started.
SEES = """
import asyncio, os, signal, sys, threading

assert threading.active_count() == 1
for file in (sys.stdin, sys.stdout, sys.stderr):
    print(file.fileno(), file.encoding, file.errors, file.isatty(), file.mode)
print(sorted(os.listdir("/proc/self/fd"))[:-1], os.getcwd(), sys.argv, sys.path[0], __package__)
print({name: value for name, value in os.environ.items() if name != "LC_CTYPE"})
print([signal.getsignal(number) for number in sorted(signal.valid_signals())])
print(asyncio.run(asyncio.sleep(0, "ran")), sys.modules["__main__"].__dict__ is globals())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sees.py").write_text(SEES)
    return tmp_path


def ignore_nothing() -> None:
    """Where the tests run in the background, or after other tests, some signals are ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def test_it_sees_what_a_started_program_sees(folder: Path) -> None:
    started = subprocess.run(
        [sys.executable, "-m", "sees", "a", "--b"],
        cwd=folder,
        env=ENV,
        input=b"given",
        capture_output=True,
        check=True,
        preexec_fn=ignore_nothing,
    )
    done = forking.run("sees", ["a", "--b"], cwd=folder, env=ENV, given=b"given")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines() == started.stdout.splitlines()


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("import sys; sys.stdout.write('kept'); sys.exit(3)", 3, b"kept"),
        ("import atexit; atexit.register(print, 'at its end')", 0, b"at its end\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, b""),
        ("print(input())", 1, b""),
        ("raise KeyboardInterrupt", -signal.SIGINT, b""),
    ],
)
def test_it_ends_as_a_started_program_does(
    tmp_path: Path, code: str, status: int, said: bytes
) -> None:
    (tmp_path / "ends.py").write_text(code)
    done = forking.run("ends", [], cwd=tmp_path, env=ENV)
    assert (done.returncode, done.stdout) == (status, said)
    assert (b"Traceback" in done.stderr) is code.startswith(("print", "raise"))


def test_it_is_killed_after_its_time(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import os, time; print(os.getpid()); time.sleep(600)")
    with pytest.raises(TimeoutError):
        forking.run("sleeps", [], cwd=tmp_path, env=ENV, timeout=0.1)


def test_its_terminal_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import time\nopen('/dev/tty').close()\nprint('shown')\nwhile True: time.sleep(0.05)"
    )
    screen, inside = pty.openpty()
    process = forking.start("waits", [], [inside] * 3, cwd=tmp_path, env=ENV, terminal=True)
    os.close(inside)
    shown = b""
    while b"shown" not in shown:
        shown += os.read(screen, 100)
    assert process.poll() is None
    assert os.getsid(process.pid) == process.pid
    os.write(screen, b"\x03")
    assert process.wait(60) == process.poll() == -signal.SIGINT
    os.close(screen)
