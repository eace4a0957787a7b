"""The rules every argument is held to before anything is sent. Pure.

Each function returns the value in its one form (UTC, UUID, tuple) or raises ``InvalidInputError``
with the field and the rule. Lengths are bytes of UTF-8, since PostgreSQL counts in bytes where it
matters: a btree entry holds at most 2,704.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar, cast, get_args
from uuid import UUID

from memory.errors import InvalidInputError, ProvenanceRequiredError, TenantRequiredError
from memory.plain import exact
from memory.types import (
    Anchor,
    Derived,
    Hit,
    Origin,
    Reason,
    Record,
    Remembered,
    Strategy,
    SubjectMatch,
)

__all__ = [
    "artefacts",
    "before",
    "closure",
    "duration",
    "flag",
    "key",
    "kind",
    "kinds",
    "limit",
    "min_score",
    "moment",
    "neighbours",
    "origins",
    "pepper",
    "period",
    "reason",
    "record_id",
    "record_ids",
    "record_keys",
    "sources",
    "strategy",
    "subject_keys",
    "subject_match",
    "tenant",
    "text",
]

MAX_TEXT = 64 * 1024
MAX_TENANT = 256
MAX_KEY = 1024
MAX_NAME = 256
MAX_LIMIT = 1_000
MAX_SEQ = 2**63 - 1
MAX_SUBJECTS = 1_000

_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


def tenant(value: object) -> str:
    """Check a tenant key: present, opaque, at most 256 bytes. Missing never means "all"."""
    if not isinstance(value, str) or not value:
        raise TenantRequiredError("tenant_key", "must be a string that is not empty")
    return key(value, "tenant_key", MAX_TENANT)


def key(value: object, field: str, max_bytes: int = MAX_KEY) -> str:
    """Check an opaque key: a string, not empty, no NUL, at most ``max_bytes`` (1,024)."""
    if not isinstance(value, str):
        raise InvalidInputError(field, "must be a string")
    value = exact(value)
    if not value:
        raise InvalidInputError(field, "must not be empty")
    if "\0" in value:
        raise InvalidInputError(field, "must not hold a NUL character")
    size = _utf8_length(value)
    if size is None:
        raise InvalidInputError(field, "must not hold a lone surrogate")
    if size > max_bytes:
        raise InvalidInputError(field, f"must not exceed {max_bytes:,} bytes of UTF-8")
    return value


def _utf8_length(value: str) -> int | None:
    # The codec's exception carries the text, so it must not become the context of ours.
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        return None


def text(value: object, field: str = "text") -> str:
    """Check a text: not blank, at most 64 KiB."""
    checked = key(value, field, MAX_TEXT)
    if not checked.strip():
        raise InvalidInputError(field, "must not be blank")
    return checked


def kind(value: object, field: str = "kind") -> str:
    """Check a kind: a short code such as ``episodic``, not free text."""
    if not isinstance(value, str) or not _KIND.fullmatch(value):
        rule = "must be 1 to 63 of a-z, 0-9, '_', '.', '-', beginning with a letter"
        raise InvalidInputError(field, rule)
    return exact(value)


def kinds(value: object, field: str = "kinds") -> tuple[str, ...]:
    """Check one kind or several."""
    return _each(value, field, kind)


def origins(value: object, field: str = "origins") -> tuple[Origin, ...]:
    """Check one origin or several."""
    return _each(value, field, lambda item, name: cast("Origin", _code(item, name, Origin)))


def subject_keys(value: object, field: str = "subject_keys") -> tuple[str, ...]:
    """Check one subject key or several: at least one, at most 1,000, each once."""
    found = _each(value, field, key)
    if len(found) > MAX_SUBJECTS:
        raise InvalidInputError(field, f"must not exceed {MAX_SUBJECTS:,} subjects")
    return found


def _each(value: object, field: str, check: Callable[[object, str], T]) -> tuple[T, ...]:
    if isinstance(value, str):
        return (check(value, field),)
    given = _items(value, field, "must be a string or a sequence of strings")
    found = dict.fromkeys(check(item, name) for item, name in given)
    if not found:
        raise InvalidInputError(field, "must name at least one")
    return tuple(found)


def _items(
    value: object, field: str, rule: str = "must be a sequence"
) -> Iterator[tuple[object, str]]:
    if not isinstance(value, Collection) or isinstance(value, str | bytes | Mapping):
        raise InvalidInputError(field, rule)
    return ((item, f"{field}.{position}") for position, item in enumerate(value))


def reason(value: object) -> Reason:
    """Check the reason of an erasure: a code, since evidence holds no free text."""
    return cast("Reason", _code(value, "reason", Reason))


def strategy(value: object) -> Strategy | None:
    """Check how to search; None stands for ``auto``."""
    if value == "auto":
        return None
    return cast("Strategy", _code(value, "strategy", Strategy, "auto"))


def subject_match(value: object) -> SubjectMatch:
    """Check whether a record must be about any of the subjects or about all of them."""
    return cast("SubjectMatch", _code(value, "subject_match", SubjectMatch))


def min_score(value: object) -> float:
    """Check the least score of a hit, on the scale of its strategy."""
    return _number(value, "min_score")


def neighbours(value: object) -> float:
    """Check which part of a neighbouring turn's score is added: 0 to 1."""
    number = _number(value, "neighbours")
    if not 0 <= number <= 1:
        raise InvalidInputError("neighbours", "must be from 0 to 1")
    return number


def _number(value: object, field: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidInputError(field, "must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInputError(field, "must be finite")
    return number


def _code(value: object, field: str, literal: object, *more: str) -> str:
    allowed = (*more, *get_args(literal))
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInputError(field, f"must be one of {', '.join(allowed)}")
    return exact(value)


def flag(value: object, field: str) -> bool:
    """Check a switch: ``dry_run=None`` must not start what was meant as a rehearsal."""
    if not isinstance(value, bool):
        raise InvalidInputError(field, "must be True or False")
    return value


def duration(value: object, field: str) -> timedelta:
    """Check a length of time: above zero and at most a day."""
    if not isinstance(value, timedelta):
        raise InvalidInputError(field, "must be a timedelta")
    if not timedelta() < value <= timedelta(days=1):
        raise InvalidInputError(field, "must be above zero and at most a day")
    return value


def moment(value: object, field: str) -> datetime:
    """Check a time and return it in UTC. A naive one is refused: it would mean another instant."""
    if not isinstance(value, datetime):
        raise InvalidInputError(field, "must be a datetime")
    if value.utcoffset() is None:
        raise InvalidInputError(field, "must have a time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(field, "must lie within the years 1 to 9999 in UTC") from None


def before(now: datetime, age: object, field: str = "older_than") -> datetime:
    """Check an age, longer than none, and return the time that lies so long ago."""
    if not isinstance(age, timedelta) or age <= timedelta():
        raise InvalidInputError(field, "must be a timedelta above zero")
    try:
        return now - age
    except OverflowError:
        raise InvalidInputError(field, "must not reach back beyond the year 1") from None


def period(since: object, until: object) -> tuple[datetime | None, datetime | None]:
    """Check a half-open period; either end may be None."""
    start = None if since is None else moment(since, "since")
    end = None if until is None else moment(until, "until")
    if start is not None and end is not None and start >= end:
        raise InvalidInputError("until", "must be later than since")
    return start, end


def limit(value: object, field: str = "limit", *, least: int = 1) -> int:
    """Check how many of something: ``least`` to 1,000."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_LIMIT:
        raise InvalidInputError(field, f"must be a whole number from {least} to {MAX_LIMIT:,}")
    return value


def anchors(value: object) -> dict[str, Anchor]:
    """Check chain positions by tenant; None is none at all."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError("anchors", "must map tenants to anchors")
    found = {tenant(key): anchor for key, anchor in value.items()}
    if not all(isinstance(anchor, Anchor) for anchor in found.values()):
        # A receipt's is None where nothing was erased: with that, nothing would be compared.
        raise InvalidInputError("anchors", "must be positions in the chain, none of them None")
    return found


def below(value: object) -> int:
    """Check a ``seq`` to page back from; None is behind the newest."""
    if value is None:
        return MAX_SEQ
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_SEQ:
        raise InvalidInputError("before", "must be the seq of an entry")
    return value


def record_id(value: object, field: str = "record_id") -> UUID:
    """Check a record's id: any UUID, its string form, or the record itself."""
    if isinstance(value, Record):
        return value.record_id
    if isinstance(value, UUID):
        return UUID(int=value.int)  # a driver's subclass is not kept
    found = _uuid(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidInputError(field, "must be a UUID")
    return found


def _uuid(value: str) -> UUID | None:
    try:
        return UUID(value)
    except ValueError:
        return None


def record_ids(value: object, field: str = "record_ids") -> tuple[UUID, ...]:
    """Check records or their ids; none is allowed."""
    return tuple(dict.fromkeys(record_id(item, name) for item, name in _items(value, field)))


def record_keys(value: object, field: str = "record_keys") -> tuple[str, ...]:
    """Check one key or several."""
    return _each(value, field, key)


def sources(value: object, field: str = "sources") -> tuple[UUID, ...]:
    """Check what a record was made from: records, ids or what a verb returned, each once."""
    if isinstance(value, Record | UUID | str | Remembered | Derived | Hit):
        return (_source(value, field),)
    given = () if value is None else _items(value, field)
    found = tuple(dict.fromkeys(_source(item, name) for item, name in given))
    if not found:
        raise ProvenanceRequiredError(field, "must name the records it was made from")
    return found


def _source(value: object, field: str) -> UUID:
    if isinstance(value, Remembered | Derived | Hit):
        value = value.record
    return record_id(value, field)


def artefacts(value: object, field: str = "artefacts") -> tuple[tuple[str, str], ...]:
    """Check ``(adapter, artefact_id)`` pairs, each once; none is allowed."""
    return tuple(dict.fromkeys(_pair(item, name) for item, name in _items(value, field)))


def _pair(value: object, field: str) -> tuple[str, str]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInputError(field, "must be a pair of adapter and artefact id")
    adapter, artefact_id = value
    return key(adapter, f"{field}.0", MAX_NAME), key(artefact_id, f"{field}.1")


def closure(value: object, field: str = "expect") -> str:
    """Check the digest of a closure, as a dry run's receipt has it."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise InvalidInputError(field, "must be 64 hexadecimal digits, from a dry run's receipt")
    return exact(value)


def pepper(value: object) -> bytes:
    """Return the pepper as bytes; none is empty. An empty one given is a mistake."""
    if value is None:
        return b""
    given = key(value, "subject_pepper").encode() if isinstance(value, str) else value
    if not isinstance(given, bytes) or not given:
        raise InvalidInputError("subject_pepper", "must be a string or bytes, not empty")
    return given
