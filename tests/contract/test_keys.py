"""Keys are opaque: none is parsed, matched as a pattern, folded or trimmed."""

from __future__ import annotations

import pytest

KEYS = [
    "acme",
    "acme-corp",
    "Acme",
    "acme ",
    " acme",
    "john_doe",
    "john-doe",
    "john%",
    "john",
    "john\\",
    "john'; drop table records; --",
    'john"doe',
    "john\ndoe",
    "{john}",
    "$1",
    ":john",
    "null",
    "caf\u00e9",
    "cafe\u0301",
    "जॉन",
    "😀" * 250,
    "k" * 1_000,
    "k" * 1_001,
]


async def test_each_person_is_recalled_and_erased_alone(acme):
    records = {}
    for key in KEYS:
        records[key] = (await acme.remember(text="same text", subject_keys=key)).record
    for key in KEYS:
        found = await acme.recall(text="same text", subject_keys=key, limit=1_000)
        assert [hit.record for hit in found.hits] == [records[key]]
    for key in KEYS:
        assert (await acme.forget(subject_key=key)).counts.memories == 1
        del records[key]
        assert await acme.records(limit=1_000) == sorted(
            records.values(), key=lambda record: record.record_id, reverse=True
        )
    hashes = {acme.subject_fingerprint(subject_key=key) for key in KEYS}
    assert len(hashes) == len(KEYS)


@pytest.mark.parametrize("wide", [False, True], ids=["subject", "whole tenant"])
async def test_each_tenant_sees_and_erases_its_own(memory, wide):
    tenants = [key for key in KEYS if len(key.encode()) <= 256]
    for tenant in tenants:
        await memory.remember(tenant, text="same text", subject_keys=["p", "q"])
    for tenant in tenants:
        asked = {} if wide else {"subject_keys": "p"}
        (hit,) = (await memory.recall(tenant, text="same", **asked)).hits
        assert hit.record.tenant_key == tenant
    for number, tenant in enumerate(tenants):
        await memory.forget(tenant, subject_key="p")
        left = [bool(await memory.records(other)) for other in tenants]
        assert left == [place > number for place in range(len(tenants))]


async def test_each_record_key_is_a_line_of_its_own(acme):
    for key in KEYS:
        await acme.remember(text="v", subject_keys="p", record_key=key)
    for key in KEYS:
        (record,) = await acme.history(record_key=key)
        assert record.record_key == key


async def test_text_and_metadata_come_back_to_the_letter(acme):
    text = "  'quoted' \"double\" \\ % _ \t\n $1 :name 😀 e\u0301 \u200b\u2028 "
    metadata = {text: {"": [text, 1e-7, -0.5, 2**53 + 1, True, None]}}
    record = (await acme.remember(text=text, subject_keys="p", metadata=metadata)).record
    again = await acme.get(record_id=record.record_id)
    assert (again.text, again.metadata) == (text, metadata)
