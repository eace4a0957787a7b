"""The rules of the machine that write: what is told, derived, superseded, related, registered."""

from __future__ import annotations

from uuid import NAMESPACE_OID, UUID, uuid5

from hypothesis import strategies as st

from memory import ConflictError, InvalidInputError, UnknownRecordError, UnknownSourceError
from performing import (
    Performing,
    Step,
    artefacts,
    delays,
    keys,
    kinds,
    lives,
    people,
    picks,
    step,
    tenants,
    ways,
)
from world import Done, Home, Told


class Writing(Performing):
    """Each verb is refused for the reasons that the model knows, and for no other."""

    @step(
        tenant=tenants,
        people=people,
        key=keys,
        kind=kinds,
        life=lives,
        own=st.sampled_from([None, None, None, "first", "second"]),
        way=ways,
        delay=delays,
    )
    def remember(self, tenant, people, key, kind, life, own, way, delay):  # fmt: skip
        home = self.homes[tenant]
        text = f"note zq{self.token}{own}z" if own else self.text()
        expires = None if life is None else self.hours + life
        record_id = uuid5(NAMESPACE_OID, f"{home.tenant} {own}") if own else None
        named = self.everybody(people)
        told = Told(text, kind, set(named), key or str(record_id), expires)
        refusals = self.blocked(home, named)
        if record_id in home.records:
            refusals = set() if home.same(record_id, told) else {ConflictError}

        def change(after: Home, ids: list[UUID]) -> list[Done]:
            new = record_id or ids[0]
            told.key = key or str(new)
            after.add(new, told)
            return []

        self.perform(
            Step(
                home,
                lambda m: m.remember(
                    home.tenant,
                    text=text,
                    subject_keys=named,
                    record_key=key,
                    kind=kind,
                    record_id=record_id,
                    expires_at=self.at(expires),
                    embedding=[float(self.written), 1.0],
                ),
                change,
                refusals,
                adds=int(record_id not in home.records),
            ),
            way,
            delay,
        )

    @step(
        tenant=tenants, batch=st.lists(st.tuples(people, keys), min_size=2, max_size=3),
        way=ways, delay=delays,
    )  # fmt: skip
    def remember_many(self, tenant, batch, way, delay):
        home = self.homes[tenant]
        batch = [(self.text(), self.everybody(named), key) for named, key in batch]
        items = [{"text": t, "subject_keys": named, "record_key": key} for t, named, key in batch]

        def change(after: Home, ids: list[UUID]) -> list[Done]:
            for new, (text, named, key) in zip(ids, batch, strict=True):
                after.add(new, Told(text, "episodic", set(named), key or str(new)))
            return []

        refusals = self.blocked(home, [person for _, named, _ in batch for person in named])
        call = lambda m: m.remember_many(home.tenant, items=items)  # noqa: E731
        self.perform(Step(home, call, change, refusals, adds=len(batch)), way, delay)

    @step(
        tenant=tenants, picks=picks, key=keys, artefact=st.none() | artefacts,
        kind=st.sampled_from(["summary", "profile"]), way=ways, delay=delays,
    )  # fmt: skip
    def derive(self, tenant, picks, key, artefact, kind, way, delay):
        home = self.homes[tenant]
        sources = self.picked(home, picks)
        if not sources:
            return
        text = self.text()
        made = [self.artefact(artefact)] if artefact else []
        refusals = self.blocked(home, home.about(sources))
        if any(item in home.debts for item in made):
            refusals.add(ConflictError)

        def change(after: Home, ids: list[UUID]) -> list[Done]:
            after.add(ids[0], Told(text, kind, set(), key or str(ids[0]), None, frozenset(sources)))
            for item in made:
                after.register(item, ids)
            return []

        self.perform(
            Step(
                home,
                lambda m: m.derive(
                    home.tenant,
                    kind=kind,
                    text=text,
                    sources=sources,
                    record_key=key,
                    artefacts=made,
                ),
                change,
                refusals,
                adds=1,
            ),
            way,
            delay,
        )

    @step(tenant=tenants, picks=picks, people=st.none() | people, way=ways, delay=delays)
    def supersede(self, tenant, picks, people, way, delay):
        home = self.homes[tenant]
        ids = self.picked(home, picks)
        old_id = ids[0] if ids else uuid5(NAMESPACE_OID, "nobody")
        old = home.records.get(old_id)
        text, refusals = self.text(), set()
        if old is None or old_id in home.expired(self.hours):
            refusals = {UnknownRecordError}
        elif old.sources:
            refusals = {InvalidInputError}
        elif not old.current:
            refusals = {ConflictError}
        named = self.everybody(people) if people else sorted(old.people) if old else ["nobody"]
        if not refusals:
            refusals = self.blocked(home, named)

        def change(after: Home, ids: list[UUID]) -> list[Done]:
            after.add(ids[0], Told(text, old.kind, set(named), old.key, old.expires))
            return []

        call = lambda m: m.supersede(  # noqa: E731
            home.tenant, record_id=old_id, text=text, subject_keys=named if people else None
        )
        self.perform(Step(home, call, change, refusals, adds=1), way, delay)

    @step(tenant=tenants, picks=picks, people=people, way=ways, delay=delays)
    def relate(self, tenant, picks, people, way, delay):
        home = self.homes[tenant]
        ids = self.picked(home, picks)
        if not ids:
            return
        named = self.everybody(people)
        refusals = self.blocked(home, set(named) - home.records[ids[0]].people)
        call = lambda m: m.relate(home.tenant, record_id=ids[0], subject_keys=named)  # noqa: E731
        change = lambda after, _: after.relate(ids[0], named) or []  # noqa: E731
        self.perform(Step(home, call, change, refusals), way, delay)

    @step(
        tenant=tenants, picks=picks, artefact=artefacts,
        missing=st.sampled_from([False] * 5 + [True]),
        way=ways, delay=delays,
    )  # fmt: skip
    def register_artefact(self, tenant, picks, artefact, missing, way, delay):
        home = self.homes[tenant]
        item = self.artefact(artefact)
        ids = self.picked(home, picks)
        if missing or not ids:
            ids = [*ids, uuid5(NAMESPACE_OID, "nobody")]
        refusals = set() if set(ids) <= home.records.keys() else {UnknownSourceError}
        if item in home.debts:
            refusals.add(ConflictError)
        call = lambda m: m.register_artefact(  # noqa: E731
            home.tenant, adapter=item[0], artefact_id=item[1], sources=ids
        )
        change = lambda after, _: after.register(item, ids) or []  # noqa: E731
        self.perform(Step(home, call, change, refusals), way, delay)
