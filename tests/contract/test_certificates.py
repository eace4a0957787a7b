"""Certificates of real erasures: complete, owing, held, rehearsed; in every store."""

from __future__ import annotations

import pytest

from memory import InvalidInputError, LegalHoldError, PartialErasureError, certificate, prove
from memory.tombstones import line

ANN, BOB = "customer:ann", "customer:bob"


def title(page):
    return page.split("<title>")[1].split("</title>")[0]


async def test_a_certificate_says_how_far_an_erasure_has_come(memory_factory, plugs, bystander):
    index = plugs.Index("vectors", broken=True)
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    told = await acme.remember(text="planted text", subject_keys=ANN)
    await acme.derive(
        kind="summary", text="planted too", sources=told, artefacts=[("vectors", "planted-id")]
    )
    plan = await acme.forget(subject_key=ANN, dry_run=True)
    with pytest.raises(PartialErasureError) as stopped:
        await acme.forget(subject_key=ANN)
    receipt = stopped.value.receipt
    stones = await acme.erasure_history(subject_key=ANN)
    page = certificate(stones, receipt=receipt)
    assert title(page) == "Certificate of an incomplete erasure"
    for secret in (ANN, "planted"):
        assert secret not in page
    with pytest.raises(InvalidInputError, match="dry run"):
        certificate(stones, receipt=plan)
    index.broken = False
    again = await acme.forget(subject_key=ANN)
    with pytest.raises(InvalidInputError, match="same erasure"):
        certificate(stones, receipt=again)
    repeated = await acme.erasure_history(subject_key=ANN, limit=1)
    assert title(certificate(repeated, receipt=again)) == "Certificate that nothing was found"
    chain = [line(stone) for stone in (await acme.erasure_history())[::-1]]
    proof = prove(chain, anchor=again.anchor, erasure_id=receipt.erasure_id)
    assert proof.tombstones == tuple(stones)


async def test_a_receipt_takes_the_tombstones_of_its_erasure_from_all_of_the_person(
    acme, bystander
):
    receipts = []
    for _ in range(2):
        await acme.remember(text="x", subject_keys=ANN)
        receipts.append(await acme.forget(subject_key=ANN))
    stones = await acme.erasure_history(subject_key=ANN)
    for stone, receipt in zip(stones, reversed(receipts), strict=True):
        page = certificate(stones, receipt=receipt)
        assert page == certificate(stone, receipt=receipt)
        assert stone.digest in page
    with pytest.raises(InvalidInputError, match="come with its receipt"):
        certificate(stones)
    await acme.forget(subject_key=BOB)
    everybody = await acme.erasure_history()
    with pytest.raises(InvalidInputError, match="one person"):
        certificate(everybody, receipt=receipts[0])


async def test_what_a_hold_keeps_is_certified_once_it_is_released(acme, operator, bystander):
    both = await acme.remember(text="x", subject_keys=ANN)
    await acme.remember(text="y", subject_keys=ANN)
    await acme.derive(
        kind="summary",
        text="z",
        sources=[both, await acme.remember(text="w", subject_keys=BOB)],
    )
    await acme.hold(subject_key=BOB)
    with pytest.raises(LegalHoldError) as stopped:
        await acme.forget(subject_key=ANN)
    partly = stopped.value.receipt
    stones = await acme.erasure_history(subject_key=ANN)
    assert title(certificate(stones, receipt=partly)) == "Certificate of an incomplete erasure"
    [receipt] = (await operator.release(subject_key=BOB)).receipts
    stones = [
        stone
        for stone in await acme.erasure_history(subject_key=ANN)
        if stone.erasure_id == receipt.erasure_id
    ]
    page = certificate(stones, receipt=receipt)
    assert title(page) == "Certificate of erasure"
    assert len(stones) == 2
    assert "in 2 transactions" in page


async def test_who_is_held_whole_leaves_nothing_to_certify(acme, bystander):
    await acme.remember(text="x", subject_keys=ANN)
    await acme.hold(subject_key=ANN)
    with pytest.raises(LegalHoldError) as stopped:
        await acme.forget(subject_key=ANN)
    stones = await acme.erasure_history(subject_key=ANN)
    assert stones == []
    with pytest.raises(InvalidInputError):
        certificate(stones, receipt=stopped.value.receipt)
