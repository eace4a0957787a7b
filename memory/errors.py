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

    >>> from memory import Memory, MemoryServiceError
    >>> try:
    ...     await Memory().remember("shop", text="", subject_keys="customer:dana")
    ... except MemoryServiceError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InvalidInputError(MemoryServiceError, ValueError):
    """An argument breaks a rule. Nothing was sent and nothing was stored.

    ``field`` is the path of the argument (``items.3.text``), ``rule`` says what it must be. Inside
    metadata the path counts positions (``metadata.0.2``), since a key may name a person.

    >>> from memory import Memory
    >>> await Memory().remember("shop", text="", subject_keys="customer:dana")
    Traceback (most recent call last):
        ...
    memory.errors.InvalidInputError: text: must not be empty
    """

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule

    def __reduce__(self) -> tuple[type[InvalidInputError], tuple[str, str]]:
        return type(self), (self.field, self.rule)


class TenantRequiredError(InvalidInputError):
    """The tenant key is missing or empty. It never means "all tenants".

    >>> from memory import Memory
    >>> await Memory().records("")
    Traceback (most recent call last):
        ...
    memory.errors.TenantRequiredError: tenant_key: must be a string that is not empty
    """


class ProvenanceRequiredError(InvalidInputError):
    """A derived record was given without the records it was made from.

    >>> from memory import Memory
    >>> await Memory().derive("shop", kind="summary", text="Dana moved", sources=[])
    Traceback (most recent call last):
        ...
    memory.errors.ProvenanceRequiredError: sources: must name the records it was made from
    """


class UnknownRecordError(MemoryServiceError):
    """No record with this id is visible to this tenant.

    >>> from uuid import uuid4
    >>> from memory import Memory
    >>> await Memory().forget_record("shop", record_id=uuid4())
    Traceback (most recent call last):
        ...
    memory.errors.UnknownRecordError: record_id: no such record
    """


class UnknownSourceError(UnknownRecordError):
    """A source of a derived record does not exist, or was erased meanwhile.

    >>> from uuid import uuid4
    >>> from memory import Memory
    >>> await Memory().derive("shop", kind="summary", text="Dana moved", sources=uuid4())
    Traceback (most recent call last):
        ...
    memory.errors.UnknownSourceError: sources: no such record
    """


class ConflictError(MemoryServiceError):
    """Another write of the same key came first, or this id already holds other content.

    >>> from memory import Memory
    >>> await Memory().forget("shop", subject_key="customer:dana", expect="0" * 64)
    Traceback (most recent call last):
        ...
    memory.errors.ConflictError: expect: the records to erase are not those of the dry run; ...
    """


class SubjectBlockedError(MemoryServiceError):
    """The person asked not to be remembered again; nothing about them may be written.

    ``forget(block_future=True)`` sets the block, ``readmit`` lifts it. It is the database that
    refuses, a write that was under way included.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> receipt = await shop.forget(subject_key="customer:dana", block_future=True)
    >>> await shop.remember(text="Dana moved", subject_keys="customer:dana")
    Traceback (most recent call last):
        ...
    memory.errors.SubjectBlockedError: subject_keys: a person is not to be remembered: ...
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

    >>> from memory import LegalHoldError, Memory
    >>> shop = Memory().for_tenant("shop")
    >>> decision = await shop.hold(subject_key="customer:eli")
    >>> try:
    ...     await shop.forget(subject_key="customer:eli")
    ... except LegalHoldError as stopped:
    ...     print(stopped.receipt.deferred)
    True
    """


class PartialErasureError(_ErasureError):
    """The database is clean; an external index has not confirmed its purge yet.

    ``receipt.outstanding`` names the adapters. Call ``forget`` again or ``purge_outstanding``.

    >>> from memory import Memory, PartialErasureError
    >>> shop = Memory().for_tenant("shop")  # without the index that holds the artefact
    >>> told = await shop.remember(text="Ana moved", subject_keys="ana")
    >>> await shop.register_artefact(adapter="cache", artefact_id="4711", sources=told)
    >>> try:
    ...     await shop.forget(subject_key="ana")
    ... except PartialErasureError as stopped:
    ...     print(stopped.receipt.outstanding, stopped.receipt.complete)
    ('cache',) False
    """


class RetryableError(MemoryServiceError):
    """Deadlock, serialization failure or a source that vanished at commit: run it again.

    The library retries by itself in transactions of its own. In a joined transaction the caller
    owns the retry, since the whole transaction has to be repeated.

    >>> from memory import Memory, PostgresStore, RetryableError
    >>> from sqlalchemy.ext.asyncio import create_async_engine
    >>> engine = create_async_engine(url)
    >>> async def erase():
    ...     async with engine.begin() as connection:
    ...         service = Memory(PostgresStore.joined(connection), subject_pepper=pepper)
    ...         return await service.forget("shop", subject_key="customer:dana")
    >>> for attempt in range(3):
    ...     try:
    ...         receipt = await erase()
    ...     except RetryableError:
    ...         continue
    ...     break
    >>> await engine.dispose()
    """


class StoreUnavailableError(MemoryServiceError):
    """The database cannot be reached, was shut down, or gave the statement up.

    ``sqlstate`` is the server's code, None where it said none.

    >>> from memory import Memory, PostgresStore, StoreUnavailableError
    >>> try:
    ...     await Memory(PostgresStore("postgresql://127.0.0.1:1/none")).records("shop")
    ... except StoreUnavailableError as error:
    ...     print(error, error.sqlstate)
    the database cannot be reached (ConnectionRefusedError) None
    """

    def __init__(self, message: str, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class InstallError(MemoryServiceError):
    """The installation does not fit: schema revision, pepper, role or privilege.

    >>> import memory
    >>> await memory.fold_counts(url)  # the application's URL, not the owner's
    Traceback (most recent call last):
        ...
    memory.errors.InstallError: the role lacks a right: ...
    """
