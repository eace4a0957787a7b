"""Nothing that the library returns or raises shows what it holds when it is printed."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from memory import ConflictError, PartialErasureError

PLANTED = {
    "tenant_key": "planted-tenant",
    "text": "planted words",
    "subject": "planted:person",
    "record_key": "planted-line",
    "meta_key": "planted_field",
    "meta_value": "planted value",
    "artefact": "planted-artefact",
    "vector": "0.123",
}


def shown(value):
    """The repr of a result, of its parts, and its HTML but for the text a reader asked for."""
    parts = [repr(value), str(value), f"{value}"]
    if dataclasses.is_dataclass(value):
        parts += [repr(getattr(value, field.name)) for field in nested_fields(value)]
    return "\n".join(parts)


def nested_fields(value):
    return [
        field
        for field in dataclasses.fields(value)
        if dataclasses.is_dataclass(getattr(value, field.name))
    ]


async def results(memory):
    """Every kind of result, made from planted values."""
    tenant = PLANTED["tenant_key"]
    told = await memory.remember(
        tenant,
        text=f"{PLANTED['text']} ann@example.com",
        subject_keys=[PLANTED["subject"], "planted:other"],
        metadata={PLANTED["meta_key"]: PLANTED["meta_value"]},
        record_key=PLANTED["record_key"],
        embedding=[0.123, 1.0],
    )
    yield told
    yield told.record
    yield told.redactions[0]
    derived = await memory.derive(
        tenant,
        kind="summary",
        text=PLANTED["text"],
        sources=told.record,
        artefacts=[("index", PLANTED["artefact"])],
    )
    yield derived
    for asked in ({"text": PLANTED["text"]}, {"embedding": [0.123, 1.0]}, {}):
        found = await memory.recall(tenant, **asked)
        assert found.hits
        yield found
        yield found.hits[0]
    exported = memory.export(tenant, subject_key=PLANTED["subject"], vectors=True)
    async for entry in exported:
        yield entry
    yield await memory.lineage(tenant, subject_key=PLANTED["subject"])
    rehearsal = await memory.forget(tenant, subject_key=PLANTED["subject"], dry_run=True)
    assert rehearsal.bystander_keys == ("planted:other",)
    yield rehearsal
    with pytest.raises(ConflictError) as conflict:
        await memory.forget(tenant, subject_key=PLANTED["subject"], expect="0" * 64)
    yield conflict.value
    with pytest.raises(PartialErasureError) as partial:
        await memory.forget(tenant, subject_key=PLANTED["subject"])
    yield partial.value
    yield partial.value.receipt
    yield (await memory.erasure_history(tenant))[0]
    yield await memory.purge_outstanding(tenant)
    yield await memory.ready()
    yield await memory.capabilities()
    yield memory
    yield memory.for_tenant(tenant)


async def test_no_repr_shows_a_text_a_key_or_a_vector(memory_factory, logs):
    memory = memory_factory(subject_pepper="planted-pepper")
    async for result in results(memory):
        for planted in (*PLANTED.values(), "planted", "ann@example.com"):
            assert planted not in shown(result), type(result).__name__
    assert "planted" not in logs.text


async def test_results_survive_a_trip_to_another_process(memory):
    told = await memory.remember("acme", text="x", subject_keys="p", metadata={"a": [1]})
    receipt = await memory.forget("acme", subject_key="p")
    for result in (told, receipt, (await memory.erasure_history("acme"))[0]):
        assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own bytes


async def test_html_escapes_what_it_shows(acme):
    await acme.remember(text="<script>alert(1)</script>", subject_keys="p")
    html = (await acme.recall(text="script"))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "no stemming" in html
