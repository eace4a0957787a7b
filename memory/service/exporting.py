"""The verbs that show what is held: to the person, and to whoever plans an erasure."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final
from uuid import UUID

from memory import validation
from memory.portability import Exported
from memory.ports import Subject
from memory.service.base import Base
from memory.types import Tombstone

__all__ = ["Exporting"]

# A record takes 200 KB at the most, with its text, metadata and vector.
_PAGE: Final = 100
_EVIDENCE: Final = 1_000
_ID: Final = 16  # bytes


class Exporting(Base):
    """Both read; neither holds a connection while its caller works on what came."""

    def export(
        self, tenant_key: str, *, subject_key: str, vectors: bool = False
    ) -> AsyncGenerator[Exported, None]:
        """Stream everything held about a person: for GDPR Art. 15 and 20, DPDP Act s. 11.

        First exactly the records that :meth:`forget` would erase, by ``record_id``: all versions,
        expired and derived ones too, with their lineage and artefacts, and with their embeddings
        where ``vectors`` asks for them. Then the evidence about the person: tombstones and
        decisions. Every entry has ``to_dict()``, plain JSON types whose ``type`` says what it is.

        Which records are in it is settled at the first step; each page of 100 is then read as it
        is. A record that is erased meanwhile is left out, one that comes meanwhile is not in it.
        """
        tenant_key = validation.tenant(tenant_key)
        key = validation.key(subject_key, "subject_key")
        with_vectors = validation.flag(vectors, "vectors")
        return self._export(tenant_key, self._subject(tenant_key, key), with_vectors)

    async def _export(
        self, tenant_key: str, subject: Subject, vectors: bool
    ) -> AsyncGenerator[Exported, None]:
        # With another pepper than the installation's the evidence would not be found.
        await self._claim()
        packed = await self._store.concerning(tenant_key, subject.key)
        for start in range(0, len(packed), _ID * _PAGE):
            ids = _unpacked(packed[start : start + _ID * _PAGE])
            page = self._store.exported(tenant_key, subject.key, ids, vectors=vectors)
            for record in await page:
                yield record
        stone: Tombstone | None = None
        while stones := await self._store.tombstones_of(tenant_key, subject.hash, stone, _EVIDENCE):
            for stone in stones:
                yield stone
        seq = 0
        while decisions := await self._store.decisions_of(tenant_key, subject.hash, seq, _EVIDENCE):
            for decision in decisions:
                seq = decision.seq
                yield decision


def _unpacked(packed: bytes) -> list[UUID]:
    return [UUID(bytes=packed[at : at + _ID]) for at in range(0, len(packed), _ID)]
