"""Chains of tombstones and streams of them, as the database would write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from memory import Anchor, Tombstone, tombstones
from memory.fingerprint import tombstone_digest

START = datetime(2024, 5, 1, 12, 0, 0, 5, tzinfo=UTC)


def sealed(stone: Tombstone, **values: Any) -> Tombstone:
    """Return a tombstone with other values and the digest of all of them."""
    changed = replace(stone, **values)
    return replace(changed, digest=tombstone_digest(changed))


def chain(tenant: str, hashes: Sequence[str]) -> list[Tombstone]:
    """Return a tenant's chain: one tombstone for each hash of a person."""
    found: list[Tombstone] = []
    for seq, subject_hash in enumerate(hashes, 1):
        stone = Tombstone(
            tenant_key=tenant,
            seq=seq,
            erasure_id=UUID(int=seq),
            subject_hash=subject_hash,
            reason="subject_request",
            scope="subject",
            memories=seq,
            derived=0,
            provenance_edges=0,
            artefacts=0,
            erased_at=START + timedelta(hours=seq),
            format=1,
            previous=found[-1].digest if found else "",
            digest="",
        )
        found.append(sealed(stone))
    return found


def anchor(stone: Tombstone) -> Anchor:
    return Anchor(seq=stone.seq, digest=stone.digest)


def stream(chains: Mapping[str, Sequence[Tombstone]]) -> list[str]:
    """Return the lines that an export writes."""
    lines = [tombstones.header()]
    for tenant, stones in chains.items():
        lines += [tombstones.line(stone) for stone in stones]
        lines.append(tombstones.head(tenant, anchor(stones[-1])))
    return [*lines, tombstones.footer(sum(map(len, chains.values())))]
