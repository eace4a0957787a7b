"""Random histories of two tenants on a real store, against ``world``: the tables are the model's.

Long form, which goes on with one seed after another and reports every failure:

    python tests/soak/histories.py --store postgres --minutes 15 --seed 1

After each step the tables are read past the store (``observed``) and must be the model's, row for
row: records, links, edges, words, counts, artefacts, debts, holds, blocks, tombstones, decisions.
The chain of tombstones is computed anew, nothing that is gone is found in any column of any table,
and what the step has no business with is there byte for byte.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from machine_erasing import Erasing
from machine_writing import Writing
from memory import Memory
from performing import ADAPTERS, Step, delays, persons, step, tenants
from world import Asked, Done


class Histories(Writing, Erasing):
    """The rules of both, what indexes and servers do, and what is read."""

    @step(adapter=st.sampled_from(ADAPTERS), seed=st.integers(0, 99),
          mode=st.sampled_from(["well", "well", "raises", "lies", "sometimes"]))  # fmt: skip
    def index_changes(self, adapter, mode, seed):
        self.indexes[adapter].mode = mode
        self.indexes[adapter].chance = random.Random(seed)  # noqa: S311

    @step(
        tenant=tenants, way=st.sampled_from(["plain", "plain", "torn", "cancelled"]), delay=delays
    )
    def purge_outstanding(self, tenant, way, delay):
        home = self.homes[tenant]
        everything = [Done(about=None, adapters=set(ADAPTERS))]
        call = lambda m: m.purge_outstanding(home.tenant)  # noqa: E731
        self.perform(Step(home, call, lambda *_: everything, asks_all=True), way, delay)

    @precondition(lambda self: self.stage.restarts)
    @step(immediately=st.booleans(), sure=st.sampled_from([False] * 5 + [True]))
    def restart(self, immediately, sure):
        if sure:
            self.run(self.stage.restart(immediately))
            for home in self.homes:
                self.settle_on(home, home, self.observe(home))

    # What is read

    @step(tenant=tenants, person=persons, number=st.integers(0, 60))
    def look(self, tenant, person, number):
        """Listing, export and recall see what there is, and nothing of what went."""
        home, name = self.homes[tenant], self.person(person)
        hidden = home.expired(self.hours)
        current = {i for i, one in home.records.items() if one.current and i not in hidden}

        async def read(memory: Memory) -> None:
            listed = await memory.records(home.tenant, limit=1000)
            assert {one.record_id for one in listed} == current
            stream = memory.export(home.tenant, subject_key=name)
            exported = {one.record_id async for one in stream if hasattr(one, "record_key")}
            assert exported == home.closure(home.roots(Asked(name)))
            mine = {i for i in current if name in home.records[i].people}
            recalled = await memory.recall(home.tenant, subject_keys=name, limit=1000)
            assert {hit.record.record_id for hit in recalled.hits} == mine
            if current:
                wanted = sorted(current)[number % len(current)]
                word = home.records[wanted].text.split()[1]
                found = await memory.recall(home.tenant, text=word, limit=1000)
                hits = {hit.record.record_id for hit in found.hits if word in hit.record.text}
                assert hits == {i for i in current if word in home.records[i].text}

        found = self.run(self.stage.run(read, "plain", 0, operator=False))
        if found.error is not None:
            raise found.error
