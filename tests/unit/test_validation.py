from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memory
from memory import Anchor, InMemoryStore, Memory, tombstones, validation, vectors
from memory.errors import InvalidInputError, TenantRequiredError

INDIA = timezone(timedelta(hours=5, minutes=30))


@given(st.text())
def test_a_key_is_taken_as_it_is_or_refused(value):
    encodable = not any(0xD800 <= ord(char) <= 0xDFFF for char in value)
    allowed = value and "\0" not in value and encodable and len(value.encode()) <= 20
    if allowed:
        assert validation.key(value, "key", 20) == value
    else:
        with pytest.raises(InvalidInputError):
            validation.key(value, "key", 20)


@given(st.text(alphabet="aZ09_.- é\n", max_size=5))
def test_a_kind_is_a_code(value):
    allowed = value[:1] == "a" and set(value) <= set("a09_.-")
    if allowed:
        assert validation.kind(value) == value
    else:
        with pytest.raises(InvalidInputError):
            validation.kind(value)


def test_times_become_utc():
    noon = datetime(2026, 1, 1, 12, tzinfo=INDIA)
    found = validation.moment(noon, "at")
    assert found == noon
    assert found.tzinfo is UTC
    with pytest.raises(InvalidInputError, match="at: must lie within"):
        validation.moment(datetime(1, 1, 1, tzinfo=INDIA), "at")
    with pytest.raises(InvalidInputError, match="at: must have a time zone"):
        validation.moment(datetime(2026, 1, 1), "at")  # noqa: DTZ001 - the fault under test


def test_a_period_may_be_open_on_either_side():
    day = datetime(2026, 1, 1, tzinfo=UTC)
    assert validation.period(None, None) == (None, None)
    assert validation.period(day, None) == (day, None)
    assert validation.period(None, day) == (None, day)
    with pytest.raises(InvalidInputError, match="until: must be later"):
        validation.period(day, day)


def test_an_id_is_a_plain_uuid_whatever_it_came_as():
    class DriverUUID(UUID):
        pass

    plain = UUID(int=7)
    for given_as in (plain, str(plain), DriverUUID(int=7), plain.hex, plain.urn):
        found = validation.record_id(given_as)
        assert (found, type(found)) == (plain, UUID)


def test_sources_are_each_named_once():
    one, two = UUID(int=1), UUID(int=2)
    assert validation.sources([one, str(two), one]) == (one, two)
    assert validation.sources(one) == (one,)
    assert validation.sources(str(two)) == (two,)


async def test_sources_may_be_what_the_verbs_returned():
    acme = Memory(InMemoryStore(), subject_pepper="p").for_tenant("acme")
    told = await acme.remember(text="invoice", subject_keys="p")
    many = await acme.remember_many(items=[{"text": "paid", "subject_keys": "p"}])
    made = await acme.derive(kind="summary", text="sum", sources=[told, *many])
    hits = (await acme.recall(text="invoice")).hits
    assert set(made.record.sources) == {told.record.record_id, many[0].record.record_id}
    for sources, record in (
        (told, told),
        (made, made),
        (hits[0], told),
        (hits, told),
        (many, *many),
    ):
        found = (await acme.derive(kind="summary", text="x", sources=sources)).record.sources
        assert found == (record.record.record_id,)
    with pytest.raises(InvalidInputError, match=r"sources\.1: must be a UUID"):
        await acme.derive(kind="summary", text="x", sources=[told, 7])


def test_artefacts_are_pairs_each_once():
    assert validation.artefacts([["a", "1"], ("a", "1"), ("b", "1")]) == (("a", "1"), ("b", "1"))
    assert validation.artefacts(()) == ()


@pytest.mark.parametrize("check", [validation.subject_keys, validation.kinds, validation.origins])
def test_one_or_several_is_said_in_words(check):
    assert check("derived") == check(["derived"]) == ("derived",)
    for refused in (7, b"derived", {"derived": 1}):
        with pytest.raises(InvalidInputError, match="must be a string or a sequence of strings"):
            check(refused)


def test_auto_is_not_a_strategy_of_the_store():
    assert validation.strategy("auto") is None
    assert validation.strategy("vector") == "vector"
    with pytest.raises(InvalidInputError, match="strategy: must be one of auto, vector, lexical"):
        validation.strategy("fuzzy")


@pytest.mark.parametrize("value", [1, 0, None, "true"])
def test_a_switch_is_true_or_false(value):
    assert validation.flag(True, "dry_run")
    assert not validation.flag(False, "dry_run")
    with pytest.raises(InvalidInputError):
        validation.flag(value, "dry_run")


def test_pages_go_back_from_any_seq_there_can_be():
    assert validation.below(None) == validation.below(2**63 - 1) == 2**63 - 1
    assert validation.below(1) == 1
    for refused in (0, 2**63, True, "1"):
        with pytest.raises(InvalidInputError, match="before: must be the seq"):
            validation.below(refused)


def test_numbers_of_other_libraries_are_numbers():
    array = SimpleNamespace(tolist=lambda: [1, 2.5])
    assert list(vectors.vector(array)) == [1.0, 2.5]
    assert list(vectors.vector([Fraction(1, 2)])) == [0.5]
    for refused in (
        SimpleNamespace(tolist=lambda: 1.0),
        SimpleNamespace(tolist=lambda: [[1.0]]),
        [Fraction(10**400)],
    ):
        with pytest.raises(InvalidInputError):
            vectors.vector(refused)


def test_a_norm_has_bounds():
    assert vectors.vector([9.9e14]) == array("f", [9.9e14])
    for refused in ([1.1e15], [9e-16], [3e-16, 3e-16]):
        with pytest.raises(InvalidInputError, match="norm between"):
            vectors.vector(refused)


def test_a_repeated_error_keeps_its_class_and_fields():
    error = TenantRequiredError("tenant_key", "must be there")
    again = error.__reduce__()
    assert (again[0], again[1]) == (TenantRequiredError, ("tenant_key", "must be there"))


def test_a_pepper_is_bytes_or_text():
    assert validation.pepper(None) == b""
    assert validation.pepper("é") == "é".encode()
    assert validation.pepper(b"\0\xff") == b"\0\xff"
    with pytest.raises(InvalidInputError):
        Memory(InMemoryStore(), subject_pepper="")


def test_an_anchor_that_is_none_is_refused_since_it_would_compare_nothing() -> None:
    anchor = Anchor(seq=1, digest="0" * 64)
    assert validation.anchors(None) == {}
    assert validation.anchors({"shop": anchor}) == {"shop": anchor}
    for bad in ({"shop": None}, {"shop": anchor, "other": None}, {"shop": (1, "0")}, [anchor]):
        with pytest.raises(InvalidInputError) as refused:
            validation.anchors(bad)
        assert refused.value.field == "anchors"
        assert "shop" not in str(refused.value)


async def test_who_gives_anchors_learns_of_one_that_is_none_before_anything_is_read() -> None:
    nowhere = "postgresql://nobody@/none?host=/nowhere"
    anchors = {"shop": None}
    with pytest.raises(InvalidInputError, match="anchors"):
        await memory.check(nowhere, anchors=anchors)
    with pytest.raises(InvalidInputError, match="anchors"):
        list(tombstones.read([tombstones.header(), tombstones.footer(0)], anchors))
