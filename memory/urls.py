"""Database URLs as people paste them, turned into what the driver takes."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from memory.errors import InvalidInputError

__all__ = ["normalize_url"]

_ASYNCPG = "postgresql+asyncpg"
_PSYCOPG = "postgresql+psycopg"
_DRIVERS = {
    "postgres": _ASYNCPG,
    "postgresql": _ASYNCPG,
    "postgres+asyncpg": _ASYNCPG,
    _ASYNCPG: _ASYNCPG,
    _PSYCOPG: _PSYCOPG,
}
_SSL_MODES = frozenset({"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})
# What asyncpg.connect and SQLAlchemy's dialect accept as a string.
_ASYNCPG_PARAMETERS = frozenset(
    {
        "database",
        "gsslib",
        "host",
        "krbsrvname",
        "passfile",
        "password",
        "port",
        "prepared_statement_cache_size",
        "service",
        "servicefile",
        "ssl",
        "target_session_attrs",
        "user",
    }
)
# libpq's parameters that asyncpg does not take from an engine's URL, and what to do instead.
_LIBPQ_HINTS = {
    "application_name": "pass an engine with connect_args={'server_settings': {...}}",
    "channel_binding": "asyncpg has none; remove it and use sslmode=verify-full",
    "connect_timeout": "pass an engine with connect_args={'timeout': seconds}",
    "options": "pass an engine with connect_args={'server_settings': {...}}",
    "sslcert": "set PGSSLCERT, or pass an engine with an ssl.SSLContext",
    "sslkey": "set PGSSLKEY, or pass an engine with an ssl.SSLContext",
    "sslrootcert": "set PGSSLROOTCERT, or pass an engine with an ssl.SSLContext",
}


def normalize_url(url: str | URL) -> URL:
    """Return the URL with the driver named and libpq's ``sslmode`` translated.

    ``postgres://`` and ``postgresql://`` mean asyncpg here; SQLAlchemy 2.1 takes the second for
    psycopg and does not know the first. ``postgresql+psycopg://`` stays as it is. A parameter that
    asyncpg cannot honour raises ``InvalidInputError`` instead of being dropped: most of them are
    about security. The error never quotes the URL.
    """
    parsed = _parse(url)
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        raise InvalidInputError("url", "must begin with postgresql:// or name asyncpg or psycopg")
    parsed = parsed.set(drivername=driver)
    return _for_asyncpg(parsed) if driver == _ASYNCPG else parsed


def _parse(url: str | URL) -> URL:
    try:
        return make_url(url.strip() if isinstance(url, str) else url)
    except (ArgumentError, ValueError):
        rule = "must be a URL; several hosts are written ?host=first:5432&host=second:5432"
    # Raised here, so that the parser's error, which may quote a part of the URL, is no context.
    raise InvalidInputError("url", rule)


def _for_asyncpg(url: URL) -> URL:
    for name, hint in _LIBPQ_HINTS.items():
        if name in url.query:
            raise InvalidInputError("url", f"{name} cannot be passed to asyncpg: {hint}")
    if not url.query.keys() <= _ASYNCPG_PARAMETERS | {"sslmode"}:
        # Not named: in a URL that was put together wrongly it may be a piece of a password.
        raise InvalidInputError("url", "has a parameter that asyncpg does not take")
    if not _can_be_reached(url):
        raise InvalidInputError("url", "must have hosts and ports that can be looked up")
    sslmode = url.query.get("sslmode")
    if sslmode is None:
        return url
    if sslmode not in _SSL_MODES:
        raise InvalidInputError("url", f"sslmode must be one of {', '.join(sorted(_SSL_MODES))}")
    return url.difference_update_query(["sslmode"]).update_query_dict({"ssl": sslmode})


def _can_be_reached(url: URL) -> bool:
    """Return whether hosts and ports are such that neither dialect nor resolver raises its own."""
    try:
        _, options = url.get_dialect()().create_connect_args(url)
        hosts = options.get("host") or ""
        for host in [hosts] if isinstance(hosts, str) else hosts:
            # A socket's directory is none to look up.
            str(host).encode("utf-8" if host.startswith("/") else "idna")
    except (ArgumentError, ValueError):
        return False
    return True
