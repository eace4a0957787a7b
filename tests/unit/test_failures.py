"""What a driver's error turns into: by code and constraint, with nothing of what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from memory import errors
from memory.failures import translate

VERSIONS = Path(__file__).parents[2] / "alembic" / "versions"
PRIVATE = "ramesh-9876543210"


def server_error(sqlstate: str, constraint: str | None = None) -> asyncpg.PostgresError:
    """An error as asyncpg makes it, with a message and a detail that quote a row."""
    fields = {"C": sqlstate, "M": f"violates: {PRIVATE}", "D": f"Failing row contains ({PRIVATE})"}
    if constraint is not None:
        fields["n"] = constraint
    error: asyncpg.PostgresError = asyncpg.PostgresError.new(fields)
    return error


def raw(error: Exception) -> Exception:
    """As it comes while connecting."""
    return error


def wrapped(error: Exception) -> Exception:
    """As SQLAlchemy hands it on: its own class around an adapter's around asyncpg's."""
    adapted = Exception(str(error))
    adapted.__cause__ = error
    adapted.sqlstate = getattr(error, "sqlstate", None)  # type: ignore[attr-defined]
    return DBAPIError("insert into records", (PRIVATE,), adapted)


@pytest.fixture(params=[raw, wrapped])
def shape(request: pytest.FixtureRequest) -> Callable[[Exception], Exception]:
    found: Callable[[Exception], Exception] = request.param
    return found


Shape = Callable[[Exception], Exception]

CODES = {
    "ME001": errors.ProvenanceRequiredError,
    "ME002": errors.ConflictError,
    "ME003": errors.RetryableError,
    "ME004": errors.ConflictError,
    "ME005": errors.SubjectBlockedError,
    "ME006": errors.UnknownSourceError,
    "ME007": errors.ConflictError,
    "ME008": errors.InvalidInputError,
    "ME009": errors.InstallError,
    "ME010": errors.ConflictError,
    "ME011": errors.InstallError,
    "ME012": errors.InstallError,
    "ME013": errors.ConflictError,
    "ME014": errors.InvalidInputError,
    "ME015": errors.UnknownRecordError,
    "ME017": errors.InvalidInputError,
    "ME018": errors.ConflictError,
    "ME019": errors.InvalidInputError,
    "40001": errors.RetryableError,
    "40P01": errors.RetryableError,
    "23503": errors.RetryableError,
    "22021": errors.InvalidInputError,
    "23502": errors.InvalidInputError,
    "23514": errors.InvalidInputError,
    "23505": errors.InvalidInputError,
    "08P01": errors.InstallError,
    "26000": errors.InstallError,
    "42P05": errors.InstallError,
    "25006": errors.InstallError,
    "25P01": errors.InvalidInputError,
    "3F000": errors.InstallError,
    "42501": errors.InstallError,
    "42703": errors.InstallError,
    "42704": errors.InstallError,
    "42883": errors.InstallError,
    "42P01": errors.InstallError,
    "08006": errors.StoreUnavailableError,
    "25P02": errors.StoreUnavailableError,
    "28P01": errors.StoreUnavailableError,
    "3D000": errors.StoreUnavailableError,
    "40003": errors.StoreUnavailableError,
    "53100": errors.StoreUnavailableError,
    "53300": errors.StoreUnavailableError,
    "55P03": errors.StoreUnavailableError,
    "57014": errors.StoreUnavailableError,
    "57P01": errors.StoreUnavailableError,
    "P0001": errors.StoreUnavailableError,
    "XX000": errors.StoreUnavailableError,
}


@pytest.mark.parametrize(("code", "expected"), CODES.items())
def test_a_code_has_its_class_and_quotes_nothing(
    shape: Shape, code: str, expected: type[errors.MemoryServiceError]
) -> None:
    found = translate(shape(server_error(code)))
    assert type(found) is expected
    assert PRIVATE not in f"{found!r} {found}"
    assert found.__cause__ is None
    assert found.__context__ is None


def test_every_code_that_the_migrations_raise_is_listed_here() -> None:
    texts = [path.read_text() for path in VERSIONS.glob("*.sql")]
    raised = {code for text in texts for code in re.findall(r"errcode = '(\w{5})'", text)}
    assert raised
    assert {code for code in raised if code.startswith("ME")} <= CODES.keys()
    assert all(code.startswith("ME") or code in CODES for code in raised)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("records_current", errors.ConflictError),
        ("records_p0_tenant_key_record_key_idx", errors.ConflictError),
        ("records_pkey", errors.RetryableError),
        ("records_p0_pkey", errors.RetryableError),
        ("records_pkey_of_a_host", errors.InvalidInputError),
        ("artefacts_pkey", errors.InvalidInputError),
        (None, errors.InvalidInputError),
    ],
)
def test_a_unique_violation_is_known_by_the_name_of_its_constraint(
    shape: Shape, constraint: str | None, expected: type[errors.MemoryServiceError]
) -> None:
    assert type(translate(shape(server_error("23505", constraint)))) is expected


def test_a_check_violation_names_the_constraint_and_not_the_row(shape: Shape) -> None:
    found = translate(shape(server_error("23514", "text_bounded")))
    assert str(found) == "record: breaks the database's rule text_bounded"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(PRIVATE),
        TimeoutError(PRIVATE),
        asyncpg.InterfaceError(f"connection is closed {PRIVATE}"),
        asyncpg.InternalClientError(PRIVATE),
    ],
)
def test_what_has_no_code_is_a_server_that_cannot_be_reached(
    shape: Shape, error: Exception
) -> None:
    found = translate(shape(error))
    assert type(found) is errors.StoreUnavailableError
    assert PRIVATE not in str(found)


def test_a_full_pool_and_a_closed_connection_are_told_apart() -> None:
    full, closed = translate(PoolTimeout(PRIVATE)), translate(ResourceClosedError(PRIVATE))
    assert type(full) is type(closed) is errors.StoreUnavailableError
    assert str(full) != str(closed)
    assert PRIVATE not in f"{full} {closed}"
