"""Strings that are code somewhere are data in every argument that takes one, or are refused."""

from __future__ import annotations

import pytest

from memory import InvalidInputError, PartialErasureError

HOSTILE = [
    "'; drop schema memory cascade; --",
    "'); delete from memory.records; select ('",
    "$1", "$$; select pg_sleep(9) $$", ":text", "%(text)s", "%s", "{0}", "{tenant}",
    "E'\\x41'", "\\", "\\'", '"', "`id`", "$(id)", "\n\\copy records to program 'id'\n",
    '{"a": {"$gt": ""}}', '"},{"x":"', "null", "NaN", "__class__", "<script>alert(1)</script>",
    "a b\tc\u2028d\x1b[2J\x07", "\ufeff\u202eevil", "%00", "*:*", "a & !b | (c <-> d)", "_%",
    "set_config('app.current_tenant', 'other', false)",
]  # fmt: skip


@pytest.fixture
async def other(memory):
    """A neighbour whose records must be the same at the end."""
    tenant = memory.for_tenant("other")
    await tenant.remember(text="the neighbour's", subject_keys="ann", metadata={"a": 1})
    before = await tenant.records()
    yield tenant
    assert await tenant.records() == before


async def test_what_is_code_elsewhere_is_kept_and_found_letter_by_letter(memory, other):
    for hostile in HOSTILE:
        await live_by_the_name_of(memory, hostile)


async def live_by_the_name_of(memory, hostile):
    tenant = memory.for_tenant(hostile)
    kept = (await tenant.remember(text="a living neighbour", subject_keys="ann")).record
    told = await tenant.remember(
        text=f"kettle {hostile}",
        subject_keys=hostile,
        metadata={hostile: [hostile, {hostile: hostile}]},
        record_key=hostile,
    )
    record = told.record
    assert record.text == f"kettle {hostile}"
    assert record.subject_keys == (hostile,)
    assert record.metadata == {hostile: [hostile, {hostile: hostile}]}
    derived = await tenant.derive(
        kind="summary", text=hostile, sources=record, artefacts=[("index", hostile)]
    )
    await tenant.register_artefact(adapter=hostile, artefact_id=hostile, sources=record)
    found = await tenant.recall(
        text=hostile, subject_keys=hostile, metadata={hostile: [{hostile: hostile}]}
    )
    assert all(hit.record == record for hit in found.hits)
    found = await tenant.recall(text="kettle", metadata={hostile: [hostile]})
    assert [hit.record for hit in found.hits] == [record]
    assert await tenant.history(record_key=hostile) == [record]
    told_of = [entry async for entry in tenant.export(subject_key=hostile)]
    assert any(entry.to_dict().get("text") == record.text for entry in told_of)
    graph = await tenant.lineage(subject_key=hostile)
    labels = {record.record_id: hostile}
    assert "<script" not in graph.svg(labels=labels) + graph.mermaid(labels=labels)
    assert derived.record in await tenant.records(subject_keys=hostile)

    await tenant.hold(subject_key="nobody " + hostile)
    with pytest.raises(PartialErasureError) as caught:
        await tenant.forget(subject_key=hostile, block_future=True)
    receipt = caught.value.receipt
    assert (receipt.counts.memories, receipt.counts.derived) == (1, 1)
    assert receipt.adapters == tuple(sorted({"index", hostile}))
    assert await tenant.records() == [kept]
    (stone,) = await tenant.erasure_history(subject_key=hostile)
    assert stone.memories == 1


async def test_where_a_code_is_wanted_code_is_refused_and_not_quoted(memory, other):
    tenant = memory.for_tenant("acme")
    kept = (await tenant.remember(text="a neighbour", subject_keys="ann")).record
    for hostile in HOSTILE:
        for field, call in coded(tenant, hostile).items():
            with pytest.raises(InvalidInputError) as caught:
                await call
            assert caught.value.field in (field, field.split(".")[0])
            # A sign or two of it may be part of any sentence.
            assert len(hostile) < 5 or hostile not in str(caught.value)
    assert await tenant.records() == [kept]


def coded(tenant, hostile):
    """Calls whose argument of that name takes codes, ids or digests only."""
    calls = {
        "kinds.0": tenant.forget(subject_key="ann", kinds=[hostile.upper()]),
        "reason": tenant.forget(subject_key="ann", reason=hostile),
        "expect": tenant.forget(subject_key="ann", expect=hostile),
        "strategy": tenant.recall(text="x", strategy=hostile),
        "record_id": tenant.get(record_id=hostile),
        "sources.0": tenant.derive(kind="summary", text="x", sources=[hostile]),
        "confirm": tenant.forget_tenant(confirm=hostile),
    }
    if hostile != "null":  # a kind like any other
        calls["kind"] = tenant.remember(text="x", subject_keys="p", kind=hostile)
    return calls
