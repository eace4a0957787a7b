"""Random histories of two tenants and an index that comes and goes: it keeps what is registered."""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from memory import ConflictError, InMemoryStore, Memory, PartialErasureError

TENANTS, PEOPLE, ARTEFACTS = ["acme", "globex"], ["ann", "bob"], ["a", "b", "c"]

tenants, people = st.sampled_from(TENANTS), st.sampled_from(PEOPLE)
steps = st.one_of(
    st.tuples(st.just("write"), tenants, people, st.sampled_from(ARTEFACTS)),
    st.tuples(st.just("forget"), tenants, people, st.none()),
    st.tuples(st.just("purge"), tenants, st.none(), st.booleans()),
    st.tuples(st.just("fault"), st.none(), st.none(), st.sampled_from(["raises", "lies", None])),
)


class Index:
    name = "index"

    def __init__(self):
        self.held, self.fault = set(), None

    async def purge(self, artefact_ids):
        if self.fault == "raises":
            raise OSError
        if self.fault is None:
            self.held -= set(artefact_ids)
        return len(artefact_ids)

    async def present(self, artefact_ids):
        return self.held & set(artefact_ids)


class History:
    def __init__(self):
        self.index = Index()
        self.store = InMemoryStore()
        self.memory = Memory(self.store, indexes=[self.index], subject_pepper="p")

    async def step(self, verb, tenant, person, detail):
        if verb == "fault":
            self.index.fault = detail
        elif verb == "purge":
            await self.memory.purge_outstanding(tenant, due_only=detail)
        elif verb == "forget":
            with contextlib.suppress(PartialErasureError):
                await self.memory.forget(tenant, subject_key=person)
        else:
            record = (await self.memory.remember(tenant, text="x", subject_keys=person)).record
            with contextlib.suppress(ConflictError):
                await self.memory.register_artefact(
                    tenant, adapter="index", artefact_id=detail, sources=record
                )
                self.index.held.add(detail)

    def of(self, kind):
        return {
            artefact
            for shelf in self.store._shelves.values()
            for _, artefact in getattr(shelf, kind)
        }

    async def check(self):
        # Everything registered is there; what is there is registered or owed.
        assert self.of("artefacts") <= self.index.held <= self.of("artefacts") | self.of("debts")
        self.index.fault = None
        for tenant in TENANTS:
            assert (await self.memory.purge_outstanding(tenant)).outstanding == ()
        assert self.index.held == self.of("artefacts")
        for tenant in TENANTS:
            for person in PEOPLE:
                assert (await self.memory.forget(tenant, subject_key=person)).complete
        assert self.index.held == set()


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=25))
def test_an_index_keeps_what_is_registered_and_nothing_else(history):
    async def run():
        replayed = History()
        for step in history:
            await replayed.step(*step)
        await replayed.check()

    asyncio.run(run())
