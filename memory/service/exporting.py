"""The verbs that show what is held: to the person, and to whoever plans an erasure."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final
from uuid import UUID

from memory import validation
from memory.errors import InvalidInputError
from memory.graphs import Lineage
from memory.portability import Exported
from memory.ports import Subject
from memory.service.erasing import Erasing
from memory.timelines import Timeline, in_order
from memory.types import Record, Tombstone

__all__ = ["Exporting"]

# A record takes 200 KB at the most, with its text, metadata and vector.
_PAGE: Final = 100
_EVIDENCE: Final = 1_000
_ID: Final = 16  # bytes


class Exporting(Erasing):
    """They read; none holds a connection while its caller works on what came."""

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

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
        >>> async for entry in shop.export(subject_key="customer:dana"):
        ...     print(entry.to_dict()["type"], entry.to_dict()["text"])
        record Dana moved
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

    async def lineage(
        self,
        tenant_key: str,
        *,
        subject_key: str | None = None,
        record_id: Record | UUID | str | None = None,
        limit: int = 200,
    ) -> Lineage:
        """Return what erasing a person, or one record, would take, and all it was made from.

        The graph holds no content and draws itself in a notebook. At most ``limit`` records (1 to
        1,000) are in it, those nearest to where the erasure starts; the counts are of all.

        Raises ``UnknownRecordError``.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
        >>> made = await shop.derive(kind="summary", text="New address", sources=told)
        >>> graph = await shop.lineage(subject_key="customer:dana")
        >>> graph.erased, len(graph.edges)
        (2, 1)
        """
        tenant_key = validation.tenant(tenant_key)
        most = validation.limit(limit)
        # By super(): what observes the verbs of Memory sees one call here, not two.
        if (subject_key is None) == (record_id is None):
            raise InvalidInputError("subject_key", "give this or record_id, exactly one")
        if record_id is None:
            key = validation.key(subject_key, "subject_key")
            plan = await super().forget(tenant_key, subject_key=key, dry_run=True)
            found = await self._store.graph(tenant_key, key, None, most)
        else:
            one = validation.record_id(record_id)
            plan = await super().forget_record(tenant_key, record_id=one, dry_run=True)
            found = await self._store.graph(tenant_key, None, one, most)
        return Lineage(
            nodes=found.nodes,
            edges=found.edges,
            records=found.records,
            erased=found.erased,
            closure=plan.closure,
            bystander_keys=plan.bystander_keys,
        )

    async def timeline(self, tenant_key: str, *, subject_key: str, limit: int = 100) -> Timeline:
        """Return what was decided and done about a person, oldest first; draws itself.

        Holds, deferred requests, erasures, what external indexes purged or owe, blocks: from the
        evidence, so it holds no key and no content. At most ``limit`` moments (1 to 1,000), the
        newest ones. Of another person's erasure that took records of this one's, there is only what
        an index still owes of those. Raises what :meth:`erasure_history` raises.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> held = await shop.hold(subject_key="customer:dana")
        >>> evidence = await shop.timeline(subject_key="customer:dana")
        >>> [moment.event for moment in evidence.moments]
        ['hold']
        """
        tenant_key = validation.tenant(tenant_key)
        most = validation.limit(limit)
        subject = self._subject(tenant_key, validation.key(subject_key, "subject_key"))
        await self._claim()
        newest, enough = validation.below(None), most + 1
        decisions = await self._store.decisions(tenant_key, subject.hash, newest, enough)
        stones = await self._store.tombstones(tenant_key, subject.hash, newest, enough)
        erasures = sorted({stone.erasure_id for stone in stones})
        purges = await self._store.purges_of(tenant_key, subject.hash, erasures)
        return in_order(subject.hash, stones, decisions, purges, most)


def _unpacked(packed: bytes) -> list[UUID]:
    return [UUID(bytes=packed[at : at + _ID]) for at in range(0, len(packed), _ID)]
