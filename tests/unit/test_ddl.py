"""The splitter decides what a migration executes: a wrong cut would half-install a trigger."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql import asyncpg, psycopg

from memory import ddl

BODIES = st.text(alphabet=";:'\"$-/*%\\aé1_ \n()", max_size=30)


def quoted(body: str) -> str:
    return "'" + body.replace("'", "''") + "'"


def in_dollars(body: str) -> str:
    tag = "$body$"
    return tag + body.replace("$", "S") + tag


def in_comment(body: str) -> str:
    return "/* " + body.replace("*", "+").replace("/", "|") + " */"


PIECES = st.one_of(
    st.sampled_from(["select", "a", "1", ":=", "::text", ":word", "%", "(1; 2)", "$1", "a$b$c"]),
    BODIES.map(quoted),
    BODIES.map(lambda body: '"' + body.replace('"', '""') + 'x"'),
    BODIES.map(in_dollars),
    BODIES.map(in_comment),
    BODIES.map(lambda body: "-- " + body.replace("\n", " ") + "\n"),
    BODIES.map(lambda body: "E" + quoted(body.replace("\\", "/"))),
)
STATEMENTS = st.lists(PIECES, max_size=6).map(lambda pieces: " ".join(["do", *pieces]).strip())


@given(st.lists(STATEMENTS, max_size=5))
@example(["do 'a;b'", "do $$ begin; end $$", "do ';' -- it's;"])
def test_a_file_is_cut_only_between_statements(wanted: list[str]) -> None:
    # A line comment may end a statement: the semicolon goes on a line of its own.
    assert list(ddl.split("\n;\n".join(wanted))) == wanted


@given(STATEMENTS)
def test_colons_and_percent_signs_reach_the_server_unchanged(
    tmp_path_factory: pytest.TempPathFactory, statement: str
) -> None:
    folder = tmp_path_factory.mktemp("revision")
    (folder / "memory_0001.sql").write_text(statement, encoding="utf-8")

    [yielded] = ddl.statements(str(folder / "memory_0001.py"))

    assert str(yielded.compile(dialect=asyncpg.dialect())) == statement
    # psycopg turns the doubled sign back into one
    doubled = statement.replace("%", "%%")
    assert str(yielded.compile(dialect=psycopg.dialect())) == doubled


@pytest.mark.parametrize(
    ("refused", "allowed"),
    [
        ("select E'it\\'s'", "select E'it''s\\n'"),
        ("select 'open", "select 'closed'"),
        ('select "open', 'select "closed"'),
        ("do $$ open", "do $$ closed $$"),
        ("do $a$ open $b$", "do $a$ closed $b$ $a$"),
        ("select 1 /* open", "select 1 /* closed */"),
        ("/* a /* nested */ comment */ select 1", "/* a comment */ select 1"),
        ("\\connect other", "select '\\connect'"),
        (
            "create function f() returns int language sql begin atomic select 1; end",
            "create function f() returns int language sql as $$ begin atomic $$",
        ),
        ("create procedure f() BEGIN /* so */\n ATOMIC select 1; end", "begin /* atomic */"),
    ],
)
def test_a_form_outside_the_contract_is_refused_not_guessed(refused: str, allowed: str) -> None:
    with pytest.raises(ddl.UnsupportedSqlError):
        list(ddl.split(refused))
    assert list(ddl.split(allowed)) == [allowed]


def test_the_error_names_the_line() -> None:
    with pytest.raises(ddl.UnsupportedSqlError, match="line 3"):
        list(ddl.split("select 1;\n\nselect 'open"))


def test_comments_stay_with_their_statement_and_alone_are_nothing() -> None:
    sql = "-- why\nselect 1; -- after\n/* only; a comment */;\n;\nselect 2"
    assert list(ddl.split(sql)) == ["-- why\nselect 1", "select 2"]


def test_a_semicolon_in_parentheses_does_not_end_the_statement() -> None:
    rule = "create rule r as on insert to t do also (select 1; select 2)"
    assert list(ddl.split(rule + "; select 3")) == [rule, "select 3"]


def test_a_revision_without_its_sql_file_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(ddl.statements(str(tmp_path / "memory_0009.py")))
