"""What an error of the driver means, by SQLSTATE and constraint name, never by message text.

The server's DETAIL is dropped with everything else it says: for roles that bypass row level
security it prints whole rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import asyncpg
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from memory.errors import (
    ConflictError,
    InstallError,
    InvalidInputError,
    MemoryServiceError,
    ProvenanceRequiredError,
    RetryableError,
    StoreUnavailableError,
    SubjectBlockedError,
    UnknownRecordError,
    UnknownSourceError,
)

__all__ = ["translate"]

_AGAIN: Final = "the database asks to run the transaction again"
_UPGRADE: Final = "the schema does not fit this version: run alembic upgrade head"

# Codes that our own triggers and functions raise (alembic/versions/*.sql).
_RULES: Final[Mapping[str, Callable[[], MemoryServiceError]]] = {
    "ME001": lambda: ProvenanceRequiredError("sources", "a derived record names its sources"),
    "ME002": lambda: ConflictError("identity and lineage of a record are fixed"),
    "ME003": lambda: RetryableError("a legal hold was set meanwhile"),
    "ME004": lambda: ConflictError("a link of a living record stays"),
    "ME005": lambda: SubjectBlockedError(),
    "ME006": lambda: UnknownSourceError("sources: no such record"),
    "ME007": lambda: ConflictError("what would erase without evidence is refused"),
    "ME008": lambda: InvalidInputError("subject_keys", "a record is about somebody"),
    "ME009": lambda: InstallError("a trigger of this schema is on a table of another"),
    "ME010": lambda: ConflictError("evidence is never changed"),
    "ME011": lambda: InstallError("a person is known under another hash: is the pepper the same?"),
    "ME012": lambda: InstallError("the tenant of the call is not the one of the connection"),
    "ME013": lambda: ConflictError(
        "expect: the records to erase are not those of the dry run; rehearse again with dry_run"
    ),
    "ME014": lambda: InvalidInputError(
        "forget", "names one person or record, an id and a reason; a hold a hash, if unknown"
    ),
    "ME015": lambda: UnknownRecordError("record_id: no such record"),
    "ME017": lambda: InvalidInputError(
        "connection", "must be READ COMMITTED to erase or decide: a snapshot misses what is newer"
    ),
    "ME018": lambda: ConflictError(
        "artefact_id: its purge is still owed; purge_outstanding, then register again"
    ),
    "ME019": lambda: InvalidInputError("connection", "purges are leased by themselves"),
}

# SQLSTATE classes and codes of the server (PostgreSQL documentation, appendix A).
_RETRYABLE: Final = frozenset({"40001", "40P01"})
_INSTALL: Final = frozenset({"42P01", "42883", "42703", "3F000", "42704"})
_LOGIN: Final[Mapping[str, str]] = {
    "28000": "the server refused the login",
    "28P01": "the server refused the login",
    "3D000": "the server has no database of this name",
}
# DDL has outdated what was prepared before the transaction: each is prepared anew for the next.
_OUTDATED: Final = (
    asyncpg.InvalidCachedStatementError,
    AsyncAdapt_asyncpg_dbapi.InvalidCachedStatementError,
)
# What PgBouncer in transaction mode makes of a statement that was prepared on another server.
_UNPREPARED: Final = frozenset({"08P01", "26000", "42P05"})
# A partition's are named after the partition and, where they are indexes only, after the columns.
_RECORD_ID: Final = re.compile(r"records_(\w+_)?pkey")
_RECORD_KEY: Final = re.compile(r"records_(current|\w+_tenant_key_record_key_idx)")


def translate(error: Exception) -> MemoryServiceError:
    """Return the library's error for one of the driver's or the pool's."""
    if isinstance(error, OverflowError):
        # A time that only raw SQL can write: before year 1 or after year 9999.
        return StoreUnavailableError("a stored time is out of Python's range")
    if isinstance(error, PoolTimeout):
        return StoreUnavailableError("no connection became free in time")
    cause: BaseException | None = error
    if isinstance(error, DBAPIError):
        cause = error.orig
    elif isinstance(error, SQLAlchemyError):
        return StoreUnavailableError("the caller's connection cannot run statements any more")
    if isinstance(cause, _OUTDATED):
        return RetryableError(_AGAIN)
    sqlstate = getattr(cause, "sqlstate", None)
    if not isinstance(sqlstate, str):
        # The class tells a refused port from a name that does not resolve; the message may quote.
        return StoreUnavailableError(f"the database cannot be reached ({type(cause).__name__})")
    constraint = getattr(getattr(cause, "__cause__", None) or cause, "constraint_name", None)
    return _by_code(sqlstate, constraint if isinstance(constraint, str) else None)


def _by_code(sqlstate: str, constraint: str | None) -> MemoryServiceError:
    if sqlstate in _RULES:
        return _RULES[sqlstate]()
    if sqlstate in _RETRYABLE or sqlstate == "23503":
        # 23503: a source or a record went at commit; the next try says so by name.
        return RetryableError(_AGAIN)
    if sqlstate == "23505" and _RECORD_KEY.fullmatch(constraint or ""):
        return ConflictError("record_key: another version came first")
    if sqlstate == "23505" and _RECORD_ID.fullmatch(constraint or ""):
        # A retried write that raced with its first attempt: the next try finds the stored row.
        return RetryableError(_AGAIN)
    if sqlstate.startswith(("22", "23")):
        return InvalidInputError("record", f"breaks the database's rule {constraint or sqlstate}")
    if sqlstate in _INSTALL:
        return InstallError(f"{_UPGRADE} (SQLSTATE {sqlstate})")
    if sqlstate == "42501":
        return InstallError(
            "the role lacks a right: to connect, grant connect on the database; for the verbs the"
            " owner calls memory.grant_app(role), or grant_operator(role) for release and readmit,"
            " grant_auditor(role) for verify_install; maintenance, check and replay take the"
            " owner's URL (SQLSTATE 42501)"
        )
    if sqlstate == "25006":
        return InstallError("the database or the role is read-only (SQLSTATE 25006)")
    if sqlstate in _LOGIN:
        return StoreUnavailableError(f"{_LOGIN[sqlstate]} (SQLSTATE {sqlstate})", sqlstate=sqlstate)
    if sqlstate in _UNPREPARED:
        return InstallError("a pooler loses prepared statements: PostgresStore(url, pooler=True)")
    if sqlstate == "25P01":
        return InvalidInputError("connection", "must be in a transaction, not in autocommit")
    return StoreUnavailableError(
        f"the database gave up on the statement (SQLSTATE {sqlstate})", sqlstate=sqlstate
    )
