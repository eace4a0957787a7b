"""A URL copied from a provider's page must connect, or be refused without being quoted."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from memory.errors import InvalidInputError
from memory.urls import normalize_url


@pytest.mark.parametrize(
    "url",
    ["postgres://h/db", "postgresql://h/db", "postgresql+asyncpg://h/db", " postgres://h/db\n"],
)
def test_postgres_without_a_driver_means_asyncpg(url: str) -> None:
    assert normalize_url(url) == make_url("postgresql+asyncpg://h/db")


def test_a_url_that_names_psycopg_keeps_it_and_its_parameters() -> None:
    url = "postgresql+psycopg://h/db?sslmode=require&application_name=x"
    assert normalize_url(url) == make_url(url)


@pytest.mark.parametrize("mode", ["disable", "require", "verify-full"])
def test_sslmode_becomes_the_ssl_argument_of_asyncpg(mode: str) -> None:
    url = normalize_url(f"postgres://u:p@h:5433/db?sslmode={mode}&target_session_attrs=primary")
    assert url.query == {"ssl": mode, "target_session_attrs": "primary"}
    _, arguments = url.get_dialect()().create_connect_args(url)
    assert arguments["ssl"] == mode


def test_credentials_hosts_and_sockets_survive() -> None:
    url = "postgresql+asyncpg://u:p%40ss@h:5433/db"
    assert normalize_url(url) == make_url(url)
    socket = normalize_url("postgres://u@/db?host=/run/postgresql&port=5433")
    assert socket.query == {"host": "/run/postgresql", "port": "5433"}
    several = normalize_url("postgres:///db?host=h1:1&host=h2:2")
    assert several.query["host"] == ("h1:1", "h2:2")


def test_normalising_twice_changes_nothing() -> None:
    once = normalize_url("postgres://u@h/db?sslmode=require")
    assert normalize_url(once) == once


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "postgresql+psycopg2://h/db",
        "not a url secret",
        "",
        "postgres://h:secret/db",
        "postgres://h1:1,h2:2/db?x=secret",
        "postgres://h/db?sslmode=secret",
        "postgres://h/db?sslmode=require&sslmode=secret",
        "postgres://h/db?sslrootcert=secret",
        "postgres://h/db?channel_binding=secret",
        "postgres://h/db?secret=1",
        "postgres://h/db?port=secret",
        "postgres://h..secret/db",
        f"postgres://secret{'t' * 60}/db",
        "postgres://\ud800secret/db",
        "postgres://h/db?host=a&host=secret&port=1",
        "postgres://h/db?host=a&host=.secret",
    ],
)
def test_what_the_driver_cannot_take_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        normalize_url(url)
    assert caught.value.field == "url"
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
