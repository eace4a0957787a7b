"""Runs tests on a mutant in a child of this process, which has loaded what takes long to load.

A child runs tests that are collected, on a function whose code is the mutant's, or it imports the
library anew, with the mutant in the place of its module. Its servers are the parent's: a test's
``database`` is then a clone of a template that the parent has prepared.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import psycopg
import pytest

import servers
from reached import Place, Watch, place
from servers import ROOT, Database, Postgres

# What the servers' fixture is made of stays the parent's, and so does what runs the mutants.
KEPT = {"forking", "processes", "servers"} | {
    path.stem for path in Path(__file__).parent.glob("*.py")
}
OURS = (str(ROOT / "memory"), str(ROOT / "tests"))
OPTIONS = [
    *("-q", "-x", "--no-header", "--timeout=60", "-p", "no:cacheprovider"),
    # Of the plugins that happen to be installed some take seconds to load.
    *("--disable-plugin-autoload", "-p", "asyncio", "-p", "timeout", "-p", "hypothesispytest"),
    # Of xdist the options that pyproject.toml gives.
    *("-p", "pytest_alembic", "-p", "xdist"),
    # The parent has loaded these too.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
]


@dataclass(frozen=True)
class Limits:
    """What a run on a mutant may take, in seconds; more is a mutant that hangs: killed."""

    cpu: int = 60
    wall: int = 900


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
        self.lines = source.count("\n")

    def get_code(self, fullname: str) -> CodeType:
        # Pytest makes errors of warnings: "is" beside a string would be killed for how it looks.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(self._source, self.path, "exec", dont_inherit=True)


class Instead(importlib.abc.MetaPathFinder):
    """Finds one module in a source of ours, and leaves all others to the finders behind it."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self._name = name
        self._unharmed = _Mutated(name, path, path.read_text())
        self._loader = _Mutated(name, path, source)

    def changes(self) -> list[tuple[CodeType, CodeType]]:
        """The functions that differ, as they are in the module and in the mutant."""
        before, after = self._unharmed.get_code(self._name), self._loader.get_code(self._name)
        return list(_changes(before, after))

    def places(self) -> set[Place]:
        """The function that differs; none where not only who calls it can tell.

        A decorator that is gone moves all below it, and tests read what a function takes.
        """
        before, after = (loader.lines for loader in (self._unharmed, self._loader))
        changes = self.changes()
        if before != after or any(_takes(old) != _takes(new) for old, new in changes):
            return set()
        return {place(old) for old, _ in changes}

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
        for name, module in list(sys.modules.items()):
            ours = str(getattr(module, "__file__", "")).startswith(OURS)
            if ours and name not in {*KEPT, "__main__"}:
                del sys.modules[name]
        if instead is not None:
            sys.meta_path.insert(0, instead)
        return pytest.main([*OPTIONS, *tests]) == pytest.ExitCode.OK

    return run


def planted(run: Callable[[], bool], instead: Instead) -> Callable[[], bool]:
    """``run``, once the function that the mutant changes has its code; true if it changes none.

    What modules compute when they are imported is as it was: who survives is to be tried anew.
    """

    def changed() -> bool:
        codes = {_place(old): new for old, new in instead.changes()}
        if not codes:
            return True
        for item in gc.get_objects():
            if type(item) is FunctionType and _place(item.__code__) in codes:
                item.__code__ = codes[_place(item.__code__)]
        return run()

    return changed


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _changes(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions of a module or a class that differ, before and after."""
    for old, new in zip(_inside(before), _inside(after), strict=True):
        if old != new and old.co_flags & inspect.CO_NEWLOCALS:
            yield old, new
        elif old != new:
            yield from _changes(old, new)


def _takes(code: CodeType) -> tuple[int, int, int]:
    return code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount


def _inside(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


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

    def every(self, watch: Watch | None = None) -> Callable[[], bool]:
        """All tests, each of which is told to ``watch`` first."""
        return lambda: self._passed(self._items, watch)

    def within(self, paths: Sequence[str]) -> Callable[[], bool]:
        """The tests in these files, in this order."""
        return lambda: self._passed(
            [item for path in paths for item in self._items if str(item.path) == path]
        )

    def named(self, names: Collection[str]) -> Callable[[], bool]:
        """The tests of these names, in the order of all; without one, nothing fails."""
        chosen = [item for item in self._items if item.nodeid in names]
        return lambda: not chosen or self._passed(chosen)

    @property
    def _items(self) -> list[pytest.Item]:
        assert self._session is not None
        return self._session.items

    def _passed(self, items: Sequence[pytest.Item], watch: Watch | None = None) -> bool:
        for item, following in zip(items, [*items[1:], None], strict=True):
            if watch is not None:
                watch.begin(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                return False
        return bool(items)


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
