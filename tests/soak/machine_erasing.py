"""The rules of the machine that erase and decide."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from memory import ConflictError, UnknownRecordError
from performing import Performing, Step, delays, persons, picks, step, tenants, ways
from stages import InPostgres
from world import Asked, Done, Home


class Erasing(Performing):
    """What goes, what a hold keeps, what is owed and which evidence is left."""

    @step(
        tenant=tenants, person=persons,
        narrowed=st.sampled_from([None, None, "summary", "profile"]),
        block=st.sampled_from([False] * 3 + [True]),
        rehearsed=st.sampled_from(["no", "no", "yes", "badly"]), way=ways, delay=delays,
    )  # fmt: skip
    def forget(self, tenant, person, narrowed, block, rehearsed, way, delay):
        home = self.homes[tenant]
        asked = Asked(self.person(person), None if narrowed is None else frozenset([narrowed]))
        expect = {"no": None, "badly": "0" * 64}.get(rehearsed)
        if rehearsed == "yes":
            expect = self.rehearse(home, asked).closure
        block = block and narrowed is None
        step = Step(
            home,
            lambda m: m.forget(
                home.tenant,
                subject_key=asked.person,
                kinds=narrowed,
                block_future=block,
                expect=expect,
            ),
            lambda after, _: [after.forget(self.afresh(asked), block=block)],
            {ConflictError} if rehearsed == "badly" else set(),
            raises_holds=True,
        )
        self.perform(step, way, delay)

    def afresh(self, asked: Asked) -> Asked:
        return Asked(asked.person, asked.kinds, asked.record)

    def rehearse(self, home: Home, asked: Asked) -> Any:
        """A dry run counts what the erasure then takes, names whom it touches, writes nothing."""
        kinds = None if asked.kinds is None else list(asked.kinds)
        found = self.run(
            self.stage.run(
                lambda m: m.forget(
                    home.tenant, subject_key=asked.person, kinds=kinds, dry_run=True
                ),
                "plain",
                0,
                operator=False,
            )
        )
        assert found.error is None, repr(found.error)
        done = home.copied().forget(self.afresh(asked))
        self.agree(found.result, done, home)
        touched = home.about(done.gone) - {asked.person}
        assert found.result.bystander_keys == tuple(sorted(touched))
        return found.result

    @step(tenant=tenants, picks=picks, way=ways, delay=delays)
    def forget_record(self, tenant, picks, way, delay):
        home = self.homes[tenant]
        ids = self.picked(home, picks) or [uuid5(NAMESPACE_OID, "nobody")]
        step = Step(
            home,
            lambda m: m.forget_record(home.tenant, record_id=ids[0]),
            lambda after, _: [after.forget(Asked(record=ids[0]))],
            set() if ids[0] in home.records else {UnknownRecordError},
            raises_holds=True,
        )
        self.perform(step, way, delay)

    @step(tenant=tenants, hours=st.integers(0, 3), way=ways, delay=delays)
    def expire(self, tenant, hours, way, delay):
        home = self.homes[tenant]
        self.hours += hours
        due = home.expired(self.hours)
        step = Step(
            home,
            lambda m: m.expire(home.tenant),
            lambda after, _: [after.sweep(due, "retention_policy", "retention")],
            sweeps=True,
        )
        self.perform(step, way, delay)

    @step(tenant=tenants, sure=st.sampled_from([False] * 7 + [True]), way=ways, delay=delays)
    def forget_tenant(self, tenant, sure, way, delay):
        home = self.homes[tenant]
        if not sure:
            return
        everything = set(home.records)
        step = Step(
            home,
            lambda m: m.forget_tenant(home.tenant, confirm=home.tenant),
            lambda after, _: [after.sweep(everything, "operator", "tenant")],
            sweeps=True,
            raises_holds=True,
        )
        self.perform(step, way, delay)

    @precondition(lambda self: isinstance(self.stage, InPostgres))
    @step(tenant=tenants, picks=picks, who=st.sampled_from(["app", "owner", "superuser"]))
    def delete(self, tenant, picks, who):
        """Somebody types DELETE into psql: it cascades, leaves evidence, and stops at a hold."""
        home = self.homes[tenant]
        ids = set(self.picked(home, picks))
        sql = "delete from memory.records where tenant_key = $1 and record_id = any($2)"
        found = self.run(self.stage.raw(who, home.tenant, sql, home.tenant, list(ids)))
        after = home.copied()
        if any(map(home.is_held, home.closure(ids))):
            assert getattr(found.error, "sqlstate", None) == "ME003", repr(found.error)
        else:
            assert found.error is None, repr(found.error)
            after.delete(ids)
        self.settle_on(home, after, self.observe(home))

    # What is decided

    @step(
        tenant=tenants, person=persons,
        action=st.sampled_from(["hold", "release", "release", "readmit"]), way=ways, delay=delays,
    )  # fmt: skip
    def decide(self, tenant, person, action, way, delay):
        home = self.homes[tenant]
        name = self.person(person)

        def change(after: Home, _: list[UUID]) -> list[Done]:
            if action == "release":
                return after.release(name)
            after.decide(action, name)
            return []

        call = lambda m: getattr(m, action)(home.tenant, subject_key=name)  # noqa: E731
        released = action == "release"
        step = Step(home, call, change, operator=action != "hold", lists_receipts=released)
        self.perform(step, way, delay)
