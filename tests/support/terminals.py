"""Commands in a pseudo-terminal: what a person sees, and what they type."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import forking

# What a test gives as ``program`` where the start itself is to be met.
MAIN = (sys.executable, "-m", "memory.cli")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SECONDS = 60


def environment(url: str | None = None, pepper: str | None = "pepper") -> dict[str, str]:
    """The environment of a command: of what configures it, only this."""
    ours = ("MEMORY_DATABASE_URL", "DATABASE_URL", "MEMORY_SUBJECT_PEPPER", "COLUMNS")
    found = {name: value for name, value in os.environ.items() if name not in ours}
    if url is not None:
        found["MEMORY_DATABASE_URL"] = url
    if pepper is not None:
        found["MEMORY_SUBJECT_PEPPER"] = pepper
    return found


def piped(
    *arguments: str | Path,
    env: Mapping[str, str],
    given: bytes = b"",
    program: Sequence[str] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run a command without a terminal, as a pipeline does; forked unless a program is given."""
    words = [*program, *map(str, arguments)]
    if program:
        done = subprocess.run(
            words, env=dict(env), input=given, capture_output=True, timeout=_SECONDS
        )
    else:
        done = forking.run("memory.cli", words, env=env, given=given, timeout=_SECONDS)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


@dataclass
class Terminal:
    """A running command and the terminal it is on; ``text`` is what it has shown, undecorated."""

    process: subprocess.Popen[bytes] | forking.Forked
    screen: int
    raw: bytes = b""
    code: int | None = None
    _from: int = field(default=0, repr=False)

    @property
    def text(self) -> str:
        shown = _CONTROL.sub("", self.raw.decode(errors="replace"))
        return shown.replace("\r\n", "\n").replace("\r", "\n")

    def expect(self, words: str) -> None:
        """Read until the words are on the screen."""
        deadline = time.monotonic() + _SECONDS
        while words not in self.text[self._from :]:
            assert time.monotonic() < deadline, self.text
            assert self._read(), f"{words!r} was never shown:\n{self.text}"
        self._from = self.text.index(words, self._from) + len(words)

    def type(self, line: str) -> None:
        os.write(self.screen, line.encode() + b"\n")

    def interrupt(self) -> None:
        """Press Control-C."""
        os.write(self.screen, b"\x03")

    def end_of_file(self) -> None:
        """Press Control-D."""
        os.write(self.screen, b"\x04")

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """Read to the end; return the exit code."""
        while self._read():
            pass
        self.code = self.process.wait(_SECONDS)
        return self.code

    def _read(self) -> bool:
        if not select.select([self.screen], [], [], _SECONDS)[0]:
            self.process.kill()
            raise AssertionError(f"nothing more was shown:\n{self.text}")
        try:
            some = os.read(self.screen, 65_536)
        except OSError:  # Linux: the other side is closed
            return False
        self.raw += some
        return bool(some)


@contextlib.contextmanager
def terminal(
    *arguments: str, env: Mapping[str, str], program: Sequence[str] = (), columns: int = 120
) -> Iterator[Terminal]:
    """Start a command as a shell would, on a terminal of its own; forked as :func:`piped` does."""
    screen, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = _started(inside, [*program, *arguments], {**env, "TERM": "xterm-256color"}, program)
    os.close(inside)
    try:
        yield Terminal(process=process, screen=screen)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(screen)


def _started(
    inside: int, words: Sequence[str], env: Mapping[str, str], program: Sequence[str]
) -> subprocess.Popen[bytes] | forking.Forked:
    if not program:
        return forking.start("memory.cli", words, [inside] * 3, env=env, terminal=True)
    return subprocess.Popen(
        words,
        env=env,
        close_fds=True,
        preexec_fn=lambda: _enter(inside),
        pass_fds=(inside,),
    )


def _enter(inside: int) -> None:
    """Make it the terminal of a session of its own, so that Control-C reaches it.

    What was started in the background ignores that, and so does what it starts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.login_tty(inside)


def on_terminal(
    *arguments: str,
    env: Mapping[str, str],
    answers: Mapping[str, str] | None = None,
    program: Sequence[str] = (),
) -> Terminal:
    """Run a command to its end, answering what it asks."""
    with terminal(*arguments, env=env, program=program) as shown:
        for question, answer in (answers or {}).items():
            shown.expect(question)
            shown.type(answer)
        shown.end()
    assert "Traceback" not in shown.text, shown.text
    return shown
