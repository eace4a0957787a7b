"""Bad input: every rule, in every verb that takes the argument, and nothing is stored."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from memory import ConflictError, InvalidInputError, ProvenanceRequiredError, TenantRequiredError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - the fault under test


def nested(depth):
    value = 1
    for _ in range(depth - 1):
        value = [value]
    return {"a": value}


def keys(field):
    return [
        ({field: ""}, field),
        ({field: 7}, field),
        ({field: "a\0b"}, field),
        ({field: "\ud800"}, field),
        ({field: "k" * 1_025}, field),
        ({field: "é" * 513}, field),
    ]


def many_keys(field):
    return [
        ({field: []}, field),
        ({field: ["p", ""]}, f"{field}.1"),
        ({field: ["p", None]}, f"{field}.1"),
        ({field: {"p": 1}}, field),
        ({field: b"p"}, field),
        ({field: 7}, field),
        ({field: ["a\0b"]}, f"{field}.0"),
        ({field: "k" * 1_025}, field),
        ({field: [str(n) for n in range(1_001)]}, field),
    ]


TEXTS = [
    ({"text": ""}, "text"),
    ({"text": " \n\t"}, "text"),
    ({"text": 7}, "text"),
    ({"text": b"x"}, "text"),
    ({"text": "a\0b"}, "text"),
    ({"text": "a\udfffb"}, "text"),
    ({"text": "x" * (64 * 1024 + 1)}, "text"),
    ({"text": "é" * (32 * 1024 + 1)}, "text"),
]
KINDS = [
    ({"kind": kind}, "kind")
    for kind in ("", "Episodic", "1st", "two words", "k" * 64, "kind\n", "é", None, 7)
]
VECTORS = [
    ({"embedding": vector}, "embedding")
    for vector in (
        [],
        [0.0, 0.0],
        [math.nan, 1.0],
        [math.inf],
        [-math.inf],
        [1e39],
        [10**400],
        [1e-16],
        [1e-50],
        [1e16],
        [True, False],
        ["1.0"],
        [None],
        [[1.0]],
        "abc",
        7,
        [1.0] * 16_001,
    )
]
METADATA = [
    ({"metadata": []}, "metadata"),
    ({"metadata": "x"}, "metadata"),
    ({"metadata": {1: 2}}, "metadata.0"),
    ({"metadata": {"a": 1, "b": [0, math.nan]}}, "metadata.1.1"),
    ({"metadata": {"a": math.inf}}, "metadata.0"),
    ({"metadata": {"a": 1 << 1024}}, "metadata.0"),
    ({"metadata": {"a": {1, 2}}}, "metadata.0"),
    ({"metadata": {"a": NOW}}, "metadata.0"),
    ({"metadata": {"a": b"x"}}, "metadata.0"),
    ({"metadata": {"a": "\0"}}, "metadata.0"),
    ({"metadata": {"\0": 1}}, "metadata.0"),
    ({"metadata": {"a": "\ud800"}}, "metadata.0"),
    ({"metadata": nested(33)}, "metadata"),
    ({"metadata": {"a": "x" * (64 * 1024)}}, "metadata"),
    ({"metadata": {"a": [1] * 70_000}}, "metadata"),
]
TIMES = [
    ({field: value}, field)
    for field in ("occurred_at", "expires_at")
    for value in (NAIVE, "2026-01-01", 7, NOW.date())
]
IDS = [
    ({"record_id": "not-a-uuid"}, "record_id"),
    ({"record_id": 7}, "record_id"),
    ({"record_id": ""}, "record_id"),
]
PERIODS = [
    ({"since": NAIVE}, "since"),
    ({"until": NAIVE}, "until"),
    ({"since": NOW, "until": NOW}, "until"),
]
FILTERS = [
    *many_keys("subject_keys"),
    *PERIODS,
    *METADATA,
    ({"kinds": []}, "kinds"),
    ({"kinds": ["profile", "Bad"]}, "kinds.1"),
    ({"origins": "other"}, "origins"),
    ({"origins": []}, "origins"),
    *(({"limit": limit}, "limit") for limit in (0, -1, 1_001, True, 2.0, "3", None)),
    *(({"subject_match": match}, "subject_match") for match in ("each", "", None, True)),
    *(({"include_superseded": flag}, "include_superseded") for flag in (None, 1, "yes")),
]
REASONS = [({"reason": reason}, "reason") for reason in ("", "because she asked", None)]
RUNS = [
    *REASONS,
    *(({"dry_run": flag}, "dry_run") for flag in (None, 1, "yes")),
    *(({"expect": digest}, "expect") for digest in ("", "f" * 63, "F" * 64, 7)),
]
REMEMBER = [
    *TEXTS,
    *many_keys("subject_keys"),
    *KINDS,
    *METADATA,
    *keys("record_key"),
    *TIMES,
    *VECTORS,
    *IDS,
]
PAGES = [
    *(({"limit": bad}, "limit") for bad in (0, 1_001)),
    *(({"before": bad}, "before") for bad in (0, -1, 2**63, 1.0, True, "1")),
    *(({"subject_key": bad}, "subject_key") for bad in ("", 7)),
]

CASES = {
    "remember": ({"text": "x", "subject_keys": "p"}, REMEMBER),
    "derive": (
        {"kind": "summary", "text": "x", "sources": [uuid4()]},
        [
            *TEXTS,
            *KINDS,
            *METADATA,
            *VECTORS,
            *keys("record_key"),
            ({"sources": ["nope"]}, "sources.0"),
            ({"sources": 7}, "sources"),
            ({"artefacts": [("index",)]}, "artefacts.0"),
            ({"artefacts": [("", "id")]}, "artefacts.0.0"),
            ({"artefacts": [("index", "i" * 1_025)]}, "artefacts.0.1"),
            ({"artefacts": 7}, "artefacts"),
        ],
    ),
    "supersede": (
        {"record_id": uuid4(), "text": "x"},
        [
            *TEXTS,
            *many_keys("subject_keys"),
            *[case for case in KINDS if case[0]["kind"] is not None],
            *METADATA,
            *TIMES,
            *VECTORS,
            *IDS,
        ],
    ),
    "relate": ({"record_id": uuid4(), "subject_keys": "p"}, [*IDS, *many_keys("subject_keys")]),
    "register_artefact": (
        {"adapter": "index", "artefact_id": "id", "sources": [uuid4()]},
        [*keys("adapter"), *keys("artefact_id"), ({"sources": ["nope"]}, "sources.0")],
    ),
    "recall": (
        {"text": "x"},
        [
            *TEXTS,
            *VECTORS,
            *FILTERS,
            *(({"min_score": least}, "min_score") for least in (math.nan, -math.inf, "1", True)),
            *(({"min_score": least}, "min_score") for least in (10**400, [0.5])),
            ({"min_score": 0.5, "strategy": "recent"}, "min_score"),
            ({"min_score": 0.5, "text": None}, "min_score"),
            *(({"neighbours": share}, "neighbours") for share in (-0.1, 1.1, math.nan, None, "1")),
            ({"neighbours": 0.5}, "neighbours"),
            ({"strategy": None}, "strategy"),
        ],
    ),
    "records": ({}, [*FILTERS, ({"after": "nope"}, "after")]),
    "get": ({"record_id": uuid4()}, IDS),
    "history": ({"record_key": "k"}, keys("record_key")),
    "forget": (
        {"subject_key": "p"},
        [*keys("subject_key"), *RUNS, ({"kinds": []}, "kinds"), ({"kinds": "Bad"}, "kinds")],
    ),
    "forget_record": ({"record_id": uuid4()}, [*IDS, *RUNS]),
    "erasure_history": ({}, PAGES),
    "decisions": ({}, PAGES),
}


@pytest.mark.parametrize("verb", CASES)
async def test_bad_input_names_field_and_rule_and_stores_nothing(acme, verb):
    usual, cases = CASES[verb]
    witness = (await acme.remember(text="witness", subject_keys="w")).record
    for bad, field in cases:
        with pytest.raises(InvalidInputError) as refused:
            await getattr(acme, verb)(**{**usual, **bad})
        assert (refused.value.field, list(bad)) == (field, list(bad))
        assert str(refused.value) == f"{field}: {refused.value.rule}"
        assert isinstance(refused.value, ValueError)
    assert await acme.records() == [witness]
    assert await acme.erasure_history() == []


async def test_a_fingerprint_of_a_bad_key_is_refused(acme):
    for bad, field in keys("subject_key"):
        with pytest.raises(InvalidInputError) as refused:
            acme.subject_fingerprint(**bad)
        assert refused.value.field == field


async def test_no_tenant_is_never_all_tenants(memory):
    await memory.remember("acme", text="x", subject_keys="p")
    for missing in ("", None, 7, b"acme"):
        calls = [(verb, CASES[verb][0]) for verb in CASES]
        calls += [("remember_many", {"items": []}), ("purge_outstanding", {})]
        for verb, usual in calls:
            with pytest.raises(TenantRequiredError) as refused:
                await getattr(memory, verb)(missing, **usual)
            assert refused.value.field == "tenant_key"
        with pytest.raises(TenantRequiredError):
            memory.for_tenant(missing)
        with pytest.raises(TenantRequiredError):
            memory.subject_fingerprint(missing, subject_key="p")
    assert len(await memory.records("acme")) == 1


async def test_a_bad_tenant_key_is_refused_and_the_longest_is_not(memory):
    for bad in ("a\0b", "\ud800", "t" * 257, "é" * 129):
        with pytest.raises(InvalidInputError) as refused:
            await memory.remember(bad, text="x", subject_keys="p")
        assert refused.value.field == "tenant_key"
        assert not isinstance(refused.value, TenantRequiredError)
    for good in ("t" * 256, "é" * 128, " ", "a\nb"):
        await memory.remember(good, text="x", subject_keys="p")
        assert len(await memory.records(good)) == 1


async def test_missing_provenance_has_an_error_of_its_own(acme):
    with pytest.raises(ProvenanceRequiredError):
        await acme.derive(kind="summary", text="x", sources=[])


async def test_the_refusals_neighbours_are_allowed(acme):
    for allowed in (
        {"text": "x" * 64 * 1024},
        {"subject_keys": "k" * 1_024},
        {"subject_keys": {"p"}},
        {"kind": "k" * 63},
        {"kind": "a.b-c_1"},
        {"metadata": nested(31)},
        {"metadata": {"a": (1, 2)}},
        {"metadata": {"a": -(2**62)}},
        {"record_key": "é" * 512},
        {"embedding": [1e-15, 1e-15]},
        {"embedding": [9e14]},
        {"embedding": (1, 2)},
        {"embedding": [1.0] * 16_000},
        {"record_id": "{12345678-1234-5678-1234-567812345678}"},
    ):
        await acme.remember(**{"text": "x", "subject_keys": "p", **allowed})
    assert len(await acme.records(limit=100)) == 14


async def test_an_error_does_not_carry_the_value(acme):
    planted = "planted-value"
    for bad in (
        {"text": f"{planted}\0"},
        {"text": f"{planted}\ud800"},
        {"subject_keys": planted * 100},
        {"kind": planted.upper()},
        {"metadata": {planted: math.nan}},
        {"metadata": {planted: {planted: {1, 2}}}},
        {"record_id": planted},
        {"record_key": f"{planted}\0"},
    ):
        with pytest.raises(InvalidInputError) as refused:
            await acme.remember(**{"text": "x", "subject_keys": "p", **bad})
        error = refused.value
        while error is not None:
            assert planted not in repr(error)
            assert planted not in repr(vars(error))
            error = error.__cause__ or error.__context__


async def test_a_field_that_remember_does_not_have_is_named_unless_it_may_be_a_text(acme):
    usual = {"text": "x", "subject_keys": "p"}
    for name, said in (
        ("subject", True),
        ("n" * 39, True),
        ("n" * 40, False),
        ("Ann Smith", False),
        ("+919820012345", False),
        (7, False),
    ):
        with pytest.raises(InvalidInputError, match="remember") as refused:
            await acme.remember_many(items=[usual, {**usual, name: 1}])
        assert refused.value.field == "items.1"
        assert (f"must not have {name}," in refused.value.rule) == said
        assert (str(name) in str(refused.value)) == said
    assert await acme.records() == []
    await acme.remember_many(items=[usual, {**usual, "kind": "profile"}])
    assert len(await acme.records()) == 2


async def test_a_rehearsal_that_is_out_of_date_says_to_rehearse_again(acme):
    await acme.remember(text="x", subject_keys="p")
    rehearsal = await acme.forget(subject_key="p", dry_run=True)
    await acme.remember(text="y", subject_keys="p")
    with pytest.raises(ConflictError) as refused:
        await acme.forget(subject_key="p", expect=rehearsal.closure)
    assert str(refused.value) == (
        "expect: the records to erase are not those of the dry run; rehearse again with dry_run"
    )
    again = await acme.forget(subject_key="p", dry_run=True)
    assert (await acme.forget(subject_key="p", expect=again.closure)).counts.memories == 2


async def test_a_record_that_has_expired_already_is_stored_and_hidden_at_once(acme):
    gone = await acme.remember(text="x", subject_keys="p", expires_at=NOW - timedelta(days=99_999))
    assert await acme.get(record_id=gone.record.record_id) is None
    assert await acme.records() == []
    assert (await acme.forget(subject_key="p")).counts.memories == 1
