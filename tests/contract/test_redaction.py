"""Identifiers are masked before anything else sees them."""

from __future__ import annotations

import pytest

from identifiers import conversation, needles
from memory import Finding, InvalidInputError, MemoryServiceError

MAIL = "ann@example.com"


class Shouting:
    """A host's redactor with a rule of its own."""

    def __init__(self, secret: str, mask: str) -> None:
        self.secret = secret
        self.mask = mask

    def redact(self, text):
        at = text.find(self.secret)
        if at < 0:
            return text, []
        found = Finding(kind="host", start=at, end=at + len(self.secret), replacement=self.mask)
        return text.replace(self.secret, self.mask), [found]


async def test_text_and_metadata_are_masked_and_the_findings_say_where(acme):
    told = await acme.remember(
        text=f"Ann writes from {MAIL} about INV-42",
        subject_keys="p",
        metadata={"contact": {"mail": [MAIL]}, "order": 7},
    )
    record = told.record
    assert MAIL not in record.text
    assert "INV-42" in record.text
    assert MAIL not in str(record.metadata)
    assert record.metadata["order"] == 7
    assert record.redacted == ("metadata.contact.mail.0", "text")
    assert [(found.kind, found.path) for found in told.redactions] == [
        ("email", "text"),
        ("email", "metadata.contact.mail.0"),
    ]
    assert MAIL not in repr(told)
    assert (await acme.get(record_id=record.record_id)).redacted == record.redacted


async def test_every_writing_verb_masks(acme):
    many = await acme.remember_many(items=[{"text": f"a {MAIL}", "subject_keys": "p"}])
    derived = await acme.derive(
        kind="summary", text=f"b {MAIL}", sources=many[0].record, metadata={"m": MAIL}
    )
    newer = await acme.supersede(
        record_id=many[0].record.record_id, text=f"c {MAIL}", metadata={"m": MAIL}
    )
    for result in (many[0], derived, newer):
        assert MAIL not in result.record.text
        assert "text" in result.record.redacted
        assert result.redactions
    for record in (derived.record, newer.record):
        assert record.redacted == ("metadata.m", "text")
        assert MAIL not in record.metadata["m"]


async def test_embedder_and_logs_never_see_an_identifier_of_any_kind(logs, memory_factory, plugs):
    embedder = plugs.RecordingEmbedder()
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    turns = conversation(seed=3)[:25]
    planted = [needle for _, value, _ in turns for needle in needles(value)]
    for number, (_, _, text) in enumerate(turns):
        told = await acme.remember(
            text=f"told {number} {text}",
            subject_keys="p",
            metadata={"said": {"list": [text]}, text: "under it"},
        )
        made = await acme.derive(
            kind="summary",
            text=f"made {number} {text}",
            sources=told.record,
            metadata={"m": text},
        )
        newer = await acme.supersede(
            record_id=told.record.record_id, text=f"newer {number} {text}", metadata={"m": text}
        )
        await acme.recall(text=f"asked {number} {text}")
        assert {"text", "metadata.said.list.0"} < set(told.record.redacted)
        assert [one.record.redacted for one in (made, newer)] == [("metadata.m", "text")] * 2
    many = await acme.remember_many(
        items=[
            {"text": f"many {number} {text}", "subject_keys": "p", "metadata": {"m": text}}
            for number, (_, _, text) in enumerate(turns)
        ]
    )
    assert [one.record.redacted for one in many] == [("metadata.m", "text")] * len(turns)
    seen = str(embedder.calls).lower()
    for number in range(len(turns)):
        for verb in ("told", "made", "newer", "asked", "many"):
            assert f"{verb} {number} " in seen
    assert [needle for needle in planted if needle in seen + logs.text.lower()] == []
    stored = str([(one.text, one.metadata, one.redacted) for one in await acme.records()]).lower()
    assert [needle for needle in planted if needle in stored] == []


async def test_a_masked_query_finds_the_masked_text(acme):
    record = (await acme.remember(text=f"call {MAIL}", subject_keys="p")).record
    found = await acme.recall(text=MAIL)
    assert [hit.record for hit in found.hits] == [record]
    assert MAIL not in found.note


async def test_a_metadata_filter_is_masked_as_what_is_stored_was(acme):
    told = await acme.remember(
        text="note one", subject_keys="p", metadata={"who": {"mail": [MAIL], MAIL: 1}, "n": 1}
    )
    await acme.remember(text="note two", subject_keys="p", metadata={"who": {"mail": []}, "n": 1})
    for asked in ({"who": {"mail": [MAIL]}}, {"who": {MAIL: 1}}, told.record.metadata):
        assert await acme.records(metadata=asked) == [told.record]
        for query in ({"text": "note"}, {}):
            found = await acme.recall(metadata=asked, **query)
            assert [hit.record for hit in found.hits] == [told.record]
            assert ("metadata was masked" in found.note) is (MAIL in str(asked))
            assert MAIL not in found.note
    plain = await acme.recall(metadata={"n": 1})
    assert len(plain.hits) == 2
    assert "masked" not in plain.note


async def test_a_metadata_filter_that_grows_in_masking_is_held_to_its_limit(memory_factory):
    acme = memory_factory(redactor=Shouting("tulip", "x" * 40_000)).for_tenant("acme")
    for verb in (acme.recall, acme.records):
        with pytest.raises(InvalidInputError) as refused:
            await verb(metadata={"a": "tulip", "b": "tulip"})
        assert refused.value.field == "metadata"
        await verb(metadata={"a": "tulip"})


async def test_no_redactor_must_be_asked_for(memory_factory):
    acme = memory_factory(redactor=None).for_tenant("acme")
    told = await acme.remember(text=f"at {MAIL}", subject_keys="p", metadata={"m": MAIL})
    assert told.record.text == f"at {MAIL}"
    assert told.record.metadata == {"m": MAIL}
    assert (told.record.redacted, told.redactions) == ((), ())


async def test_a_redactor_of_the_hosts_is_used(memory_factory):
    acme = memory_factory(redactor=Shouting("tulip", "[FLOWER]")).for_tenant("acme")
    told = await acme.remember(
        text=f"tulip for {MAIL}", subject_keys="p", metadata={"tulip": ["tulip"]}
    )
    assert told.record.text == f"[FLOWER] for {MAIL}"
    assert told.record.metadata == {"[FLOWER]": ["[FLOWER]"]}
    assert {found.kind for found in told.redactions} == {"host"}


@pytest.mark.parametrize("mask", ["", "x" * (64 * 1024 + 1), "a\0b"], ids=["blank", "long", "nul"])
async def test_the_limits_hold_after_masking_too(memory_factory, mask):
    acme = memory_factory(redactor=Shouting("tulip", mask)).for_tenant("acme")
    with pytest.raises(InvalidInputError) as refused:
        await acme.remember(text="tulip", subject_keys="p")
    assert refused.value.field == "text"
    with pytest.raises(InvalidInputError) as refused:
        await acme.remember_many(
            items=[{"text": text, "subject_keys": "p"} for text in ("rose", "tulip")]
        )
    assert refused.value.field == "items.1.text"
    assert await acme.records() == []
    await acme.remember(text="rose", subject_keys="p")


async def test_metadata_that_grows_in_masking_is_held_to_its_limit(memory_factory):
    acme = memory_factory(redactor=Shouting("tulip", "x" * 40_000)).for_tenant("acme")
    given = {"text": "rose", "subject_keys": "p"}
    with pytest.raises(InvalidInputError) as refused:
        await acme.remember(**given, metadata={"a": "tulip", "b": "tulip"})
    assert refused.value.field == "metadata"
    assert await acme.records() == []
    await acme.remember(**given, metadata={"a": "tulip"})


async def test_a_redactor_that_fails_stores_nothing_and_says_nothing(memory_factory, logs):
    class Failing:
        def redact(self, text):
            raise ValueError(text)

    acme = memory_factory(redactor=Failing()).for_tenant("acme")
    with pytest.raises(MemoryServiceError) as refused:
        await acme.remember(text="planted", subject_keys="p")
    assert "planted" not in str(refused.value) + repr(refused.value.__context__) + logs.text
    assert await acme.records() == []
