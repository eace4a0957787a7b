"""Every public name is documented with an example, and the examples run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Final

import pytest

from docstrings import examples, run_examples
from pages import names_for
from public import documented, methods, names

# Of a port, the class shows the methods.
_OF_PORTS: Final = re.compile(r"memory\.(DerivedIndex|Embedder|EventSink|Redactor)\.")

CALLABLES: Final = {
    path: item
    for path, item in documented().items()
    if (inspect.isclass(item) or inspect.isroutine(item)) and not _OF_PORTS.match(path)
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
    assert not lacking, lacking


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
