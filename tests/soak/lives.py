"""What happens to one person in the soak: remembered, written about, held, forgotten or kept.

One task lives one life at a time and nobody else touches its person, so each answer can be judged
at once: what was acknowledged is read back, what was erased is not. The tenant, its chain of
tombstones, its counts and the bystander, from whose records some of this is derived too, are
everybody's.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from calling import ADAPTERS, BYSTANDER, LONGEST_LIFE, TENANTS, Client
from ledger import marker
from memory import ConflictError, ExportedRecord, LegalHoldError, UnknownSourceError
from memory.ids import uuid7


class Life:
    """One person in one tenant. ``records`` were acknowledged and do not expire."""

    def __init__(self, client: Client, pause: float) -> None:
        self.client, self.chance, self.wait = client, client.chance, pause
        self.tenant = self.chance.choice(TENANTS)
        self.mark = marker(self.chance)
        self.person = f"customer:{self.mark}"
        self.records: dict[UUID, str] = {}

    async def live(self) -> None:
        self.client.ledger.note("born", person=self.mark, tenant=self.tenant)
        verbs = [self.remember, self.remember, self.remember_many, self.derive, self.derive_shared]
        verbs += [self.supersede, self.recall, self.export, self.look, self.register]
        await self.remember()
        for _ in range(self.chance.randint(4, 14)):
            await self.client.pause(self.wait)
            await self.chance.choice(verbs)()
        if self.chance.random() < 0.15:
            await self.hold()
        if self.chance.random() < 0.75:
            await self.forget()

    def telling(self, *texts: str, expires: bool = False) -> None:
        """Say beforehand what will be sent, and about whom."""
        self.client.ledger.note(
            "telling", texts=texts, people=[self.mark], tenant=self.tenant, expires=expires
        )

    def told(self, text: str, record_id: UUID) -> None:
        self.client.ledger.note("told", text=text, record=str(record_id))
        self.records[record_id] = text

    async def remember(self) -> None:
        """With an id of our own, so that it may be repeated where nobody knows what happened."""
        text, record_id = marker(self.chance), uuid7()
        expires = self.chance.random() < 0.2
        self.telling(text, expires=expires)
        soon = datetime.now(UTC) + timedelta(seconds=self.chance.uniform(0.5, LONGEST_LIFE))
        stored = await self.client.again(
            "remember",
            lambda: self.client.app.remember(
                self.tenant,
                text=f"note {text} of {self.mark}",
                subject_keys=self.person,
                metadata={"mark": text},
                record_id=record_id,
                expires_at=soon if expires else None,
                embedding=[self.chance.random() for _ in range(8)],
            ),
            text,
            self.mark,
        )
        if stored.record.record_id != record_id:
            self.client.violation("a retry was answered with another record")
        if not expires:
            self.told(text, record_id)

    async def remember_many(self) -> None:
        texts = [marker(self.chance) for _ in range(5)]
        ids = [uuid7() for _ in texts]
        self.telling(*texts)
        items = [
            {"text": f"note {text}", "subject_keys": self.person, "record_id": record_id}
            for text, record_id in zip(texts, ids, strict=True)
        ]
        await self.client.again(
            "remember_many",
            lambda: self.client.app.remember_many(self.tenant, items=items),
            self.mark,
        )
        for text, record_id in zip(texts, ids, strict=True):
            self.told(text, record_id)

    async def derive(self, *more: Any) -> UUID | None:
        """From one to three records; where it was lost, another one may stand beside it."""
        if not self.records:
            return None
        text = marker(self.chance)
        sources = [*self.chance.sample(list(self.records), min(3, len(self.records))), *more]
        self.telling(text)
        made = await self.client.again(
            "derive",
            lambda: self.client.app.derive(
                self.tenant, kind="summary", text=f"digest {text}", sources=sources
            ),
            text,
        )
        self.told(text, made.record.record_id)
        return made.record.record_id

    async def derive_shared(self) -> None:
        """From a record of the bystander's too, which outlives it."""
        found = await self.client.again(
            "records",
            lambda: self.client.app.records(
                self.tenant, subject_keys=BYSTANDER, origins="remembered", limit=3
            ),
        )
        await self.derive(self.chance.choice(found))

    async def supersede(self) -> None:
        if not self.records:
            return
        old, text = self.chance.choice(list(self.records)), marker(self.chance)
        self.telling(text)
        try:
            stored = await self.client.again(
                "supersede",
                lambda: self.client.app.supersede(self.tenant, record_id=old, text=f"anew {text}"),
                text,
            )
        except (ConflictError, ValueError):
            # A newer version is there, from an attempt that was lost or before; or it is derived.
            return
        self.told(text, stored.record.record_id)

    async def register(self) -> None:
        """Register, write, register again: what was erased in between is ours to remove."""
        made = await self.derive()
        if made is None:
            return
        index = self.client.indexes[self.chance.choice(ADAPTERS)]
        artefact = marker(self.chance)
        self.client.ledger.note("artefact", artefact=artefact, person=self.mark)
        for attempt in range(2):
            try:
                await self.client.again(
                    "register_artefact",
                    lambda: self.client.app.register_artefact(
                        self.tenant, adapter=index.name, artefact_id=artefact, sources=made
                    ),
                    artefact,
                )
            except UnknownSourceError:
                index.remove(artefact)
                return
            if attempt == 0:
                index.add(artefact)

    # What is read back

    async def recall(self) -> None:
        """By a word, by a vector: what was acknowledged is found, and only this tenant's."""
        if not self.records:
            return
        record_id, text = self.chance.choice(list(self.records.items()))
        app = self.client.app
        found = await self.client.again(
            "recall",
            lambda: app.recall(self.tenant, text=text, include_superseded=True, limit=5),
        )
        if record_id not in {hit.record.record_id for hit in found.hits}:
            self.client.violation(f"recall missed {text}")
        vector = [self.chance.random() for _ in range(8)]
        near = await self.client.again(
            "recall_vector",
            lambda: app.recall(self.tenant, embedding=vector, subject_keys=self.person, limit=5),
        )
        for hit in (*found.hits, *near.hits):
            if hit.record.tenant_key != self.tenant:
                self.client.violation(f"recall crossed into {hit.record.tenant_key}")
        if any(self.person not in hit.record.subject_keys for hit in near.hits):
            self.client.violation("recall by person found somebody else's")

    async def _exported(self) -> set[UUID]:
        stream = self.client.app.export(self.tenant, subject_key=self.person)
        return {one.record_id async for one in stream if isinstance(one, ExportedRecord)}

    async def export(self) -> None:
        exported = await self.client.again("export", self._exported, self.mark)
        if missing := self.records.keys() - exported:
            self.client.violation(f"an export lacks {missing}")

    async def look(self) -> None:
        app = self.client.app
        found = await self.client.again(
            "records",
            lambda: app.records(
                self.tenant, subject_keys=self.person, include_superseded=True, limit=1000
            ),
        )
        if missing := self.records.keys() - {one.record_id for one in found}:
            self.client.violation(f"a listing lacks {missing}")

    # What is decided, and the end

    async def hold(self) -> None:
        """Hold, ask for the erasure, which waits; release, which completes it."""
        app, operator = self.client.app, self.client.operator
        self.client.ledger.note("hold", person=self.mark)
        await self.client.again("hold", lambda: app.hold(self.tenant, subject_key=self.person))
        asks = self.chance.random() < 0.5
        if asks:
            self.client.ledger.note("erasing", person=self.mark)
            answer = await self.client.again(
                "forget_held", lambda: app.forget(self.tenant, subject_key=self.person)
            )
            if not isinstance(answer, LegalHoldError) or answer.receipt.counts.records:
                self.client.violation("a held person was erased")
            await self.look()
        await self.client.again(
            "release", lambda: operator.release(self.tenant, subject_key=self.person)
        )
        if asks:
            await self.gone()

    async def forget(self) -> None:
        self.client.ledger.note("erasing", person=self.mark)
        await self.client.again(
            "forget",
            lambda: self.client.app.forget(self.tenant, subject_key=self.person),
            self.mark,
        )
        await self.gone()

    async def gone(self) -> None:
        self.client.ledger.note("erased", person=self.mark)
        self.records.clear()
        if await self.client.again("export", self._exported):
            self.client.violation("what was erased is exported")
