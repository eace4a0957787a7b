"""What a plug or a name may be is said before anything is sent, by both stores alike."""

from __future__ import annotations

import pytest

from memory import InvalidInputError


@pytest.mark.parametrize("model", [object(), 7, "", "a\0b", "\ud800", "m" * 257], ids=range(6))
async def test_a_model_that_names_no_space_is_refused(memory_factory, plugs, model):
    acme = memory_factory(embedder=plugs.AnsweringEmbedder([[1.0, 2.0]], model)).for_tenant("acme")
    with pytest.raises(InvalidInputError) as caught:
        await acme.remember(text="Ann called", subject_keys="ann")
    assert caught.value.field == "embedder.model"


@pytest.mark.parametrize("answer", [None, 1, (row for row in [[1.0]])], ids=range(3))
async def test_an_answer_without_a_length_is_refused(memory_factory, plugs, answer):
    acme = memory_factory(embedder=plugs.AnsweringEmbedder(answer)).for_tenant("acme")
    with pytest.raises(InvalidInputError) as caught:
        await acme.remember(text="Ann called", subject_keys="ann")
    assert caught.value.field == "embedder"


async def test_an_adapter_has_a_short_name(acme):
    record = (await acme.remember(text="Ann called", subject_keys="ann")).record
    await acme.register_artefact(adapter="a" * 256, artefact_id="1", sources=record)
    with pytest.raises(InvalidInputError) as caught:
        await acme.register_artefact(adapter="a" * 257, artefact_id="1", sources=record)
    assert caught.value.field == "adapter"


async def test_one_long_key_over_many_masked_values_does_not_multiply(acme):
    bomb = {"k" * 20_000: ["a@bc.io"] * 3_000}
    with pytest.raises(InvalidInputError) as caught:
        await acme.remember(text="Ann called", subject_keys="ann", metadata=bomb)
    assert caught.value.field == "metadata"
    assert await acme.records() == []
    many = await acme.remember(
        text="Ann called", subject_keys="ann", metadata={"mails": ["a@bc.io"] * 3_000}
    )
    assert len(many.record.redacted) == 3_000
