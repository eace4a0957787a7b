"""Hashes that stand for people and for evidence. Pure, and the same in SQL where SQL needs them.

Fields are length-prefixed (``<bytes>:<field>``) before they are hashed, so that no two lists of
fields share an encoding: ``("ab", "c")`` and ``("a", "bc")`` differ.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from memory.types import Tombstone

__all__ = [
    "TOMBSTONE_FORMAT",
    "closure_digest",
    "pepper_check",
    "pepper_problem",
    "subject_hash",
    "tombstone_digest",
]

TOMBSTONE_FORMAT = 1
"""The version of what a digest covers; it stands in every tombstone."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _framed(fields: Iterable[str]) -> bytes:
    encoded = (field.encode() for field in fields)
    return b"".join(b"%d:%b" % (len(field), field) for field in encoded)


def subject_hash(tenant_key: str, subject_key: str, pepper: bytes) -> str:
    """Return the 64 hexadecimal digits by which evidence names a person.

    HMAC-SHA-256 (RFC 2104) over tenant and subject, keyed with the pepper. With an empty pepper it
    is a pseudonym in the sense of GDPR Art. 4(5): whoever can list the subject keys can undo it.

    >>> from memory import fingerprint
    >>> fingerprint.subject_hash("shop", "customer:dana", b"from a secret manager")[:16]
    '62c1d07d0075ab51'
    """
    return hmac.new(pepper, _framed((tenant_key, subject_key)), hashlib.sha256).hexdigest()


def pepper_check(pepper: bytes) -> str:
    """Return the value by which an installation recognises its pepper without storing it.

    >>> from memory import fingerprint
    >>> fingerprint.pepper_check(b"")
    'no pepper'
    """
    if not pepper:
        return "no pepper"
    return hmac.new(pepper, b"erasable-memory pepper check", hashlib.sha256).hexdigest()


def pepper_problem(given: str, *, first_without: bool) -> str:
    """Say what is wrong with a pepper that is not the recorded one, by its check value.

    >>> from memory import fingerprint
    >>> fingerprint.pepper_problem(fingerprint.pepper_check(b""), first_without=False)
    'no subject pepper was given, but this installation was first used with one'
    """
    if given == pepper_check(b""):
        return "no subject pepper was given, but this installation was first used with one"
    if first_without:
        return "a subject pepper was given, but this installation was first used without one"
    return "the subject pepper is not the one this installation was first used with"


def closure_digest(record_ids: Iterable[UUID]) -> str:
    """Return the digest of a set of records, independent of their order.

    >>> from uuid import UUID
    >>> from memory import fingerprint
    >>> ids = [UUID(int=1), UUID(int=2)]
    >>> fingerprint.closure_digest(ids) == fingerprint.closure_digest(reversed(ids))
    True
    """
    return hashlib.sha256(b"".join(sorted(item.bytes for item in record_ids))).hexdigest()


def tombstone_digest(tombstone: Tombstone) -> str:
    """Return the digest a tombstone must carry; ``memory.tombstone_digest`` in SQL is its twin.

    The time enters as whole microseconds since 1970, so that neither side's formatting matters.

    >>> from memory import Memory, fingerprint
    >>> shop = Memory().for_tenant("shop")
    >>> receipt = await shop.forget(subject_key="customer:dana")
    >>> [stone] = await shop.erasure_history()
    >>> fingerprint.tombstone_digest(stone) == stone.digest == receipt.anchor.digest
    True
    """
    microseconds = (tombstone.erased_at - _EPOCH) // timedelta(microseconds=1)
    fields = (
        tombstone.format,
        tombstone.previous,
        tombstone.tenant_key,
        tombstone.seq,
        tombstone.erasure_id,
        tombstone.subject_hash,
        tombstone.reason,
        tombstone.scope,
        tombstone.memories,
        tombstone.derived,
        tombstone.provenance_edges,
        tombstone.artefacts,
        microseconds,
    )
    return hashlib.sha256(_framed(map(str, fields))).hexdigest()
