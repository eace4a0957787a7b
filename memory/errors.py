"""Every error this library raises.

::

    MemoryServiceError
    ├── InvalidInputError            an argument breaks a rule; also a ValueError
    │   ├── TenantRequiredError      the tenant key is missing or empty
    │   └── ProvenanceRequiredError  a derived record names no source
    ├── UnknownRecordError           no such record for this tenant
    │   └── UnknownSourceError       a derived record names a source that is not there
    ├── ConflictError                another write got there first, or an id holds other content
    ├── SubjectBlockedError          the person asked not to be remembered again
    ├── LegalHoldError               the erasure met a legal hold; carries the receipt
    ├── PartialErasureError          an external index still owes a purge; carries the receipt
    ├── RetryableError               run the transaction again: deadlock or serialization failure
    ├── StoreUnavailableError        the database cannot be reached, or gave up on the statement
    └── InstallError                 wrong revision, pepper, role or privilege

Messages name the field and the rule, never the value: they end up in logs, and a log that quotes
what was refused keeps it for ever. For the same reason no error carries a driver exception as its
``__cause__`` or ``__context__``: those hold the statement's parameters.

The base is not called ``MemoryError`` because Python has a builtin of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory.types import Receipt

__all__ = [
    "ConflictError",
    "InstallError",
    "InvalidInputError",
    "LegalHoldError",
    "MemoryServiceError",
    "PartialErasureError",
    "ProvenanceRequiredError",
    "RetryableError",
    "StoreUnavailableError",
    "SubjectBlockedError",
    "TenantRequiredError",
    "UnknownRecordError",
    "UnknownSourceError",
]


class MemoryServiceError(Exception):
    """Base of every error raised by this library.

    Worth a retry are ``RetryableError``, at once, and ``StoreUnavailableError``, after a pause; a
    ``PartialErasureError`` is resumed; every other needs a change first. What was sent when a
    connection was lost may have been committed: with a ``record_id`` of your own, ``remember``
    stores nothing twice.
    """


class InvalidInputError(MemoryServiceError, ValueError):
    """An argument breaks a rule. Nothing was sent and nothing was stored.

    ``field`` is the path of the argument (``items.3.text``), ``rule`` says what it must be. Inside
    metadata the path counts positions (``metadata.0.2``), since a key may name a person.
    """

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule

    def __reduce__(self) -> tuple[type[InvalidInputError], tuple[str, str]]:
        return type(self), (self.field, self.rule)


class TenantRequiredError(InvalidInputError):
    """The tenant key is missing or empty. It never means "all tenants"."""


class ProvenanceRequiredError(InvalidInputError):
    """A derived record was given without the records it was made from."""


class UnknownRecordError(MemoryServiceError):
    """No record with this id is visible to this tenant."""


class UnknownSourceError(UnknownRecordError):
    """A source of a derived record does not exist, or was erased meanwhile."""


class ConflictError(MemoryServiceError):
    """Another write of the same key came first, or this id already holds other content."""


class SubjectBlockedError(MemoryServiceError):
    """The person asked not to be remembered again; nothing about them may be written.

    ``forget(block_future=True)`` sets the block, ``readmit`` lifts it. It is the database that
    refuses, a write that was under way included.
    """

    def __init__(
        self,
        message: str = (
            "subject_keys: a person is not to be remembered: blocked by forget(block_future=True),"
            " readmit lifts it"
        ),
    ) -> None:
        super().__init__(message)


class _ErasureError(MemoryServiceError):
    """An erasure that ended incomplete. What it could erase is erased and committed."""

    def __init__(self, message: str, receipt: Receipt) -> None:
        super().__init__(message)
        self.receipt = receipt

    def __reduce__(self) -> tuple[type[_ErasureError], tuple[str, Receipt]]:
        return type(self), (str(self), self.receipt)


class LegalHoldError(_ErasureError):
    """A legal hold (GDPR Art. 17(3)(e)) keeps records that the erasure asked for.

    ``receipt.held`` says how many; nothing of a held person goes, and of somebody else everything
    that leads to no held record. Where ``receipt.deferred``, the request is recorded and
    ``release`` completes it: in the caller's transaction, once that commits.
    """


class PartialErasureError(_ErasureError):
    """The database is clean; an external index has not confirmed its purge yet.

    ``receipt.outstanding`` names the adapters. Call ``forget`` again or ``purge_outstanding``.
    """


class RetryableError(MemoryServiceError):
    """Deadlock, serialization failure or a source that vanished at commit: run it again.

    The library retries by itself in transactions of its own. In a joined transaction the caller
    owns the retry, since the whole transaction has to be repeated.
    """


class StoreUnavailableError(MemoryServiceError):
    """The database cannot be reached, was shut down, or gave the statement up.

    ``sqlstate`` is the server's code, None where it said none.
    """

    def __init__(self, message: str, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class InstallError(MemoryServiceError):
    """The installation does not fit: schema revision, pepper, role or privilege."""
