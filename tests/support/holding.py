"""Records of one tenant, and erasures of theirs that a hold refuses."""

from __future__ import annotations

import pytest

from memory import LegalHoldError


async def told(tenant, text, *people, **more):
    return (await tenant.remember(text=text, subject_keys=people, **more)).record


async def made(tenant, text, *sources, **more):
    return (await tenant.derive(kind="summary", text=text, sources=sources, **more)).record


async def everything(tenant):
    """Every record of the tenant but the bystander's."""
    found = await tenant.records(limit=1_000)
    return sorted(r.record_id for r in found if "customer:zoe" not in r.subject_keys)


async def kept(tenant, *records):
    assert await everything(tenant) == sorted(record.record_id for record in records)
    for record in records:
        assert await tenant.get(record_id=record.record_id) == record


async def refused(erasure):
    """The receipt of an erasure that a hold stopped, whole or in part."""
    with pytest.raises(LegalHoldError) as caught:
        await erasure
    receipt = caught.value.receipt
    assert (receipt.complete, receipt.completed_at) == (False, None)
    return receipt


async def actions(tenant):
    return [decision.action for decision in reversed(await tenant.decisions())]
