"""Runs tests on a mutant in a child of this process, which has loaded what takes long to load.

A child imports the library anew, with the mutant in the place of its module. Its servers are the
parent's: a test's ``database`` is then a clone of a template that the parent has prepared.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import psycopg
import pytest

import servers
from servers import ROOT, Database, Postgres

SUPPORT = {path.stem for path in (ROOT / "tests" / "support").glob("*.py")}
OPTIONS = [
    *("-q", "-x", "--no-header", "--timeout=60", "-p", "no:cacheprovider"),
    # Of the plugins that happen to be installed some take seconds to load.
    *("--disable-plugin-autoload", "-p", "asyncio", "-p", "timeout", "-p", "hypothesispytest"),
    *("-p", "pytest_alembic"),
    # The parent has loaded these too.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
]


@dataclass(frozen=True)
class Limits:
    """What a run on a mutant may take, in seconds; more is a mutant that hangs: killed."""

    cpu: int = 60
    wall: int = 300


LIMITS = Limits()


class Attached(Postgres):
    """A server whose roles and template another process has made, and will remove."""

    def __init__(self, made: Postgres, template: str) -> None:
        self._superuser, self._token, self._password = made._superuser, made._token, made._password
        self._names = (f"{template}_{n}" for n in range(1_000_000))
        self._template = template
        self._admin = psycopg.connect(self._libpq(self._superuser), autocommit=True)
        self.version = made.version

    def close(self) -> None:
        self._admin.close()


class _Mutated(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: Path, source: str) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class Instead(importlib.abc.MetaPathFinder):
    """Finds one module in a source of ours, and leaves all others to the finders behind it."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self._name = name
        self._loader = _Mutated(name, path, source)

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self._loader)


def outcome(run: Callable[[], bool], *, log: Path, limits: Limits = LIMITS) -> str:
    """Run tests in a child: ``survived`` if all pass, ``killed`` if one fails, or ``hung``."""
    child = os.fork()
    if not child:
        _child(run, log, limits)
    status = _waited(child, limits.wall)
    if status is None or os.WIFSIGNALED(status):
        return "hung"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def imported_anew(tests: Sequence[str], instead: Instead | None = None) -> Callable[[], bool]:
    """The tests, and a library that is imported for them, with a mutant in it."""

    def run() -> bool:
        for name in list(sys.modules):
            # What the servers' fixture is made of stays the parent's.
            if name.partition(".")[0] == "memory" or name in SUPPORT - {"servers", "processes"}:
                del sys.modules[name]
        if instead is not None:
            sys.meta_path.insert(0, instead)
        return pytest.main([*OPTIONS, *tests]) == pytest.ExitCode.OK

    return run


class Collected:
    """Collects tests once, and then has ``work`` run some of them as often as it likes."""

    def __init__(self, tests: Sequence[str], work: Callable[[Collected], None]) -> None:
        self._work = work
        self._session: pytest.Session | None = None
        if pytest.main([*OPTIONS, "-s", *tests], plugins=[self]) != pytest.ExitCode.OK:
            raise SystemExit("the tests cannot be collected")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._session = session
        self._work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"\nFAILED {report.nodeid}\n{report.longreprtext}")

    def only(self, paths: Sequence[str]) -> Callable[[], bool]:
        """The tests in these files, in this order."""

        def run() -> bool:
            session = self._session
            assert session is not None
            items = [item for path in paths for item in session.items if str(item.path) == path]
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    return False
            return bool(items)

        return run


def _waited(child: int, wall: int) -> int | None:
    """The child's exit status, or null after its time; whatever it started is ended too."""
    end = time.monotonic() + wall
    status = None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            status = code
        else:
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status


def _child(run: Callable[[], bool], log: Path, limits: Limits) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        spent = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (spent + limits.cpu, spent + limits.cpu + 5))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = int(not run())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextlib.contextmanager
def server_for_all() -> Iterator[Postgres]:
    """A server that the tests of every child take for theirs; see :func:`prepared`."""
    with servers.embedded_postgres(18) as made:

        @contextlib.contextmanager
        def running(version: int) -> Iterator[Postgres]:
            with contextlib.closing(Attached(made, _template[-1])) as postgres:
                yield postgres

        own, servers.embedded_postgres = servers.embedded_postgres, running
        try:
            yield made
        finally:
            servers.embedded_postgres = own


@contextlib.contextmanager
def prepared(made: Postgres) -> Iterator[Database]:
    """A migrated database of which the databases of the next child are clones."""
    with made.migrated() as database:
        _template.append(database.name)
        try:
            yield database
        finally:
            _template.pop()


_template: list[str] = []
