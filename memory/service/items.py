"""What ``remember_many`` takes, and how an item is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from dataclasses import field as _field
from datetime import datetime
from typing import Any
from uuid import UUID

from memory import metadata, validation, vectors
from memory.errors import InvalidInputError
from memory.vectors import Vector

__all__ = ["Item", "checked", "item_of", "located"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One memory for ``remember_many``; the fields are the arguments of ``remember``.

    >>> from memory import Item, Memory
    >>> items = [Item(text="Dana moved", subject_keys="customer:dana", kind="profile")]
    >>> [told] = await Memory().remember_many("shop", items=items)
    >>> told.record.kind
    'profile'
    """

    text: str = _field(repr=False)
    subject_keys: str | Sequence[str] = _field(repr=False)
    kind: str = "episodic"
    metadata: Mapping[str, Any] | None = _field(default=None, repr=False)
    record_key: str | None = _field(default=None, repr=False)
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    embedding: Vector | None = _field(default=None, repr=False)
    record_id: UUID | str | None = None
    searchable: bool = True


_FIELDS = frozenset(item.name for item in fields(Item))
_LONGEST_NAME = 40


def item_of(value: Item | Mapping[str, Any], field: str) -> Item:
    """Return an item from a mapping of its fields; text and subjects are required."""
    if isinstance(value, Item):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, "must be an Item or a mapping")
    for name in value:
        if name not in _FIELDS:
            raise _unknown(name, field)
    for required in ("text", "subject_keys"):
        if required not in value:
            raise InvalidInputError(f"{field}.{required}", "is required")
    return Item(**value)


def _unknown(name: object, field: str) -> InvalidInputError:
    # What cannot be the name of an argument may be a text that stands in the wrong place.
    if isinstance(name, str) and name.isidentifier() and len(name) < _LONGEST_NAME:
        return InvalidInputError(field, f"must not have {name}, which remember does not take")
    return InvalidInputError(field, "must have no fields but those of remember")


def checked(item: Item) -> Item:
    """Return the item with every field checked and in its one form."""
    record_id = None if item.record_id is None else validation.record_id(item.record_id)
    return replace(
        item,
        text=validation.text(item.text),
        subject_keys=validation.subject_keys(item.subject_keys),
        kind=validation.kind(item.kind),
        metadata=metadata.metadata(item.metadata),
        record_key=None
        if item.record_key is None
        else validation.key(item.record_key, "record_key"),
        occurred_at=None
        if item.occurred_at is None
        else validation.moment(item.occurred_at, "occurred_at"),
        expires_at=None
        if item.expires_at is None
        else validation.moment(item.expires_at, "expires_at"),
        embedding=None if item.embedding is None else vectors.vector(item.embedding),
        record_id=record_id,
        searchable=validation.flag(item.searchable, "searchable"),
    )


@contextmanager
def located(prefix: str) -> Iterator[None]:
    """Put ``prefix`` before the field of an ``InvalidInputError`` raised inside."""
    try:
        yield
    except InvalidInputError as error:
        moved = type(error)(f"{prefix}{error.field}", error.rule)
    else:
        return
    raise moved
