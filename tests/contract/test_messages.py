"""A message says what to do next, and names no person."""

from __future__ import annotations

import pytest

from memory import (
    InvalidInputError,
    LegalHoldError,
    PartialErasureError,
    SubjectBlockedError,
)


async def test_a_partial_erasure_names_the_indexes_and_the_verb_that_resumes(memory_factory):
    acme = memory_factory().for_tenant("acme")
    told = await acme.remember(text="Ann called", subject_keys="customer:ann")
    for adapter in ("shelf", "cache"):
        await acme.register_artefact(adapter=adapter, artefact_id="art-1", sources=told.record)
    with pytest.raises(PartialErasureError) as partial:
        await acme.forget(subject_key="customer:ann")
    assert str(partial.value) == (
        "not confirmed by 'cache', 'shelf'; the database is clean: call purge_outstanding"
    )


async def test_a_hold_says_whether_the_release_completes_the_erasure(acme):
    await acme.remember(text="Ann called", subject_keys="customer:ann")
    await acme.hold(subject_key="customer:ann")
    with pytest.raises(LegalHoldError, match=r"recorded, and release completes it$"):
        await acme.forget(subject_key="customer:ann")
    with pytest.raises(LegalHoldError, match=r"not completed by the release: call again then$"):
        await acme.forget_tenant(confirm="acme")


async def test_a_block_says_what_set_it_and_what_lifts_it(acme):
    await acme.forget(subject_key="customer:ann", block_future=True)
    with pytest.raises(SubjectBlockedError, match=r"block_future=True.*readmit") as blocked:
        await acme.remember(text="Ann called", subject_keys="customer:ann")
    assert "ann" not in str(blocked.value).lower().replace("forget", "")


async def test_a_lineage_of_nothing_or_of_two_things_is_refused(acme):
    told = await acme.remember(text="x", subject_keys="p")
    for given in ({}, {"subject_key": "p", "record_id": told.record}):
        with pytest.raises(InvalidInputError) as refused:
            await acme.lineage(**given)
        assert str(refused.value) == "subject_key: give this or record_id, exactly one"
