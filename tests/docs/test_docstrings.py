"""Every public name is documented with an example, and the examples run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Final

import pytest

from docstrings import examples, run_examples
from memory import ports
from pages import names_for
from public import methods, names

# The bound verbs say what the verbs of Memory say; of a port, the class shows the methods; the
# stores implement one, which is called by Memory only.
_SHOWN_ELSEWHERE: Final = re.compile(
    r"memory\.(TenantMemory|DerivedIndex|Embedder|EventSink|Redactor)\."
    rf"|memory\.(InMemory|Postgres)Store\.({'|'.join(vars(ports.Store))})$"
)
# What a redactor of this package and the walk over metadata agree on.
_OURS: Final = {"memory.redaction.PatternRedactor.steps", "memory.ExportedRecord.of"}

CALLABLES: Final = {
    path: item
    for path, item in {**names(), **methods()}.items()
    if (inspect.isclass(item) or inspect.isroutine(item))
    and not _SHOWN_ELSEWHERE.match(path)
    and path not in _OURS
}
SHOWN: Final = {path: item for path, item in CALLABLES.items() if examples(item)}
_GIVEN: Final = re.compile(r"\b(url|owner_url|operator_url)\b")


def test_every_public_callable_has_an_example() -> None:
    lacking = []
    for path, item in CALLABLES.items():
        own, called = examples(item), f"{path.rpartition('.')[2]}("
        if not own and path in methods():
            # A method may be shown by the class.
            own = examples(names()[path.rpartition(".")[0]])
        if not own or (inspect.isroutine(item) and not any(called in x.source for x in own)):
            lacking.append(path)
    assert lacking == []


@pytest.mark.parametrize("path", SHOWN)
def test_the_examples_run(
    path: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"__name__": "__main__"}
    if any(_GIVEN.search(example.source) for example in examples(SHOWN[path])):
        given = names_for(request.getfixturevalue("database"))
    (tmp_path / "PG_VERSION").write_text("18")
    run_examples(SHOWN[path], path, {"data_directory": tmp_path, **given})
