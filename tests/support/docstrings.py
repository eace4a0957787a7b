"""Examples in docstrings, run as a reader pastes them into ``python -m asyncio`` or a notebook."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import traceback
from typing import Any, Final

_CHECKER: Final = doctest.OutputChecker()
_PARSER: Final = doctest.DocTestParser()
_FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(item: object) -> list[doctest.Example]:
    """The ``>>>`` examples in the docstring of a public name."""
    return _PARSER.get_examples(inspect.getdoc(item) or "")


def run_examples(item: object, name: str, names: dict[str, Any]) -> None:
    """Run a docstring's examples on one event loop; what they print is what they say."""
    with asyncio.Runner() as runner:
        for example in examples(item):
            got = _outcome(example, name, names, runner)
            want = example.want if example.exc_msg is None else example.exc_msg
            difference = _CHECKER.output_difference(example, got, _FLAGS)
            assert _CHECKER.check_output(want, got, _FLAGS), f"{example.source}{difference}"


def _outcome(
    example: doctest.Example, name: str, names: dict[str, Any], runner: asyncio.Runner
) -> str:
    """Return what an example prints, or the last line of what it raises where that is wanted."""
    code = compile(
        example.source, f"<{name}>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            result = eval(code, names)  # noqa: S307
            if inspect.iscoroutine(result):
                runner.run(result)
        except (Exception, SystemExit) as error:
            if example.exc_msg is None:
                raise
            return "".join(traceback.format_exception_only(error))
    return output.getvalue()
