"""The statements of the ``.sql`` file beside a migration, one at a time.

asyncpg prepares whatever it is sent and refuses two statements in one string, so the file has to
be split. The splitter follows PostgreSQL's lexical rules (manual, section 4.1) for quotes,
comments, dollar quotes and parentheses, and refuses the forms it would have to guess at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import DDL

__all__ = ["UnsupportedSqlError", "split", "statements"]

_QUOTED = re.compile(
    r"""
      (?P<escape>  (?<![\w$]) [eE] '(?:[^']|'')*' )
    | (?P<string>  '(?:[^']|'')*' )
    | (?P<name>    "(?:[^"]|"")*" )
    | (?P<line>    --[^\n]* )
    | (?P<block>   /\* .*? \*/ )
    | (?P<dollar>  (?<![\w$]) \$(?P<tag>(?:[^\W\d]\w*)?)\$ .*? \$(?P=tag)\$ )
    | (?P<open>    ['"] | /\* | (?<![\w$]) \$(?:[^\W\d]\w*)?\$ )
    | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BEGIN_ATOMIC = re.compile(r"\bbegin\s+atomic\b", re.IGNORECASE)


class UnsupportedSqlError(ValueError):
    """The file holds a form that cannot be split safely. Nothing was executed."""


def statements(revision_file: str) -> Iterator[DDL]:
    """Read the statements of the file with the same stem and the suffix ``.sql``.

    Call it with ``__file__``. Each one is ready for ``op.execute``, online and offline: neither
    ``:word`` nor ``%`` is taken for a parameter. Raises ``UnsupportedSqlError``.
    """
    sql = Path(revision_file).with_suffix(".sql").read_text(encoding="utf-8")
    for statement in split(sql):
        yield DDL(statement.replace("%", "%%"))  # type: ignore[no-untyped-call]  # SQLAlchemy gives DDL no types


def split(sql: str) -> Iterator[str]:
    """Cut ``sql`` into statements, as written, without the semicolon between them.

    Comments stay with the statement they precede; what is only a comment is dropped.
    Raises ``UnsupportedSqlError`` for an unfinished quote or comment, nested comments, a backslash
    before a quote in ``E'...'``, ``begin atomic`` and psql's backslash commands.
    """
    start, depth, code = 0, 0, ""
    for token in _QUOTED.finditer(sql):
        kind = token.lastgroup
        if kind == "other":
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if token[0] == ";" and depth == 0:
                yield from _finished(sql[start : token.start()], code)
                start, code = token.end(), ""
                continue
        _refuse(token, kind, line=sql.count("\n", 0, token.start()) + 1)
        code += _code(token, kind)
    yield from _finished(sql[start:], code)


def _finished(statement: str, code: str) -> Iterator[str]:
    """Yield the statement if it is more than blanks and comments."""
    if _BEGIN_ATOMIC.search(code):
        raise UnsupportedSqlError("begin atomic: write the body in $$ quotes")
    if code.strip():
        yield statement.strip()


def _code(token: re.Match[str], kind: str | None) -> str:
    """Reduce the token to what is read as code: a blank for a comment, a mark for a quote."""
    if kind == "other":
        return token[0]
    return " " if kind in {"line", "block"} else "'"


def _refuse(token: re.Match[str], kind: str | None, *, line: int) -> None:
    """Raise if the token starts a form outside the contract."""
    rule = None
    if kind == "open":
        rule = "a quote or comment is not closed"
    elif kind == "other" and token[0] == "\\":
        rule = "psql commands are not SQL"
    elif kind == "escape" and "\\'" in token[0]:
        rule = "E'...' with a backslash before a quote: double the quote instead"
    elif kind == "block" and "/*" in token[0][2:]:
        rule = "nested comments"
    if rule is not None:
        raise UnsupportedSqlError(f"line {line}: {rule}")
