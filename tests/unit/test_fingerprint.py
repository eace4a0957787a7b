from __future__ import annotations

import dataclasses
import hashlib
import hmac
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import fingerprint
from memory.types import Tombstone

STONE = Tombstone(
    tenant_key="acmé",
    seq=2,
    erasure_id=UUID("0190a9c0-0000-7000-8000-000000000000"),
    subject_hash="ab" * 32,
    reason="subject_request",
    scope="subject",
    memories=3,
    derived=1,
    provenance_edges=2,
    artefacts=0,
    erased_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    format=1,
    previous="cd" * 32,
    digest="",
)


def test_the_subject_hash_is_a_keyed_hash_of_framed_fields():
    framed = b"4:acme12:customer:ann"
    expected = hmac.new(b"pepper", framed, hashlib.sha256).hexdigest()
    assert fingerprint.subject_hash("acme", "customer:ann", b"pepper") == expected


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_different_people_have_different_hashes(tenant, subject, other_tenant, other_subject):
    mine = fingerprint.subject_hash(tenant, subject, b"p")
    theirs = fingerprint.subject_hash(other_tenant, other_subject, b"p")
    assert (mine == theirs) is ((tenant, subject) == (other_tenant, other_subject))


def test_fields_do_not_run_into_one_another():
    assert fingerprint.subject_hash("ab", "c", b"") != fingerprint.subject_hash("a", "bc", b"")
    assert fingerprint.subject_hash("a", "b", b"x") != fingerprint.subject_hash("a", "b", b"y")


def test_the_pepper_check_tells_peppers_apart_without_telling_them():
    assert fingerprint.pepper_check(b"") == "no pepper"
    assert fingerprint.pepper_check(b"one") != fingerprint.pepper_check(b"two")
    assert fingerprint.pepper_check(b"one") == fingerprint.pepper_check(b"one")
    assert "one" not in fingerprint.pepper_check(b"one")


@pytest.mark.parametrize(
    ("pepper", "first_without", "said"),
    [
        (b"", False, "no subject pepper was given"),
        (b"one", True, "first used without one"),
        (b"one", False, "not the one"),
    ],
)
def test_a_wrong_pepper_is_told_from_one_that_is_missing_or_new(pepper, first_without, said):
    given = fingerprint.pepper_check(pepper)
    assert said in fingerprint.pepper_problem(given, first_without=first_without)


@given(st.lists(st.uuids(), max_size=6), st.randoms(use_true_random=False))
def test_a_closure_is_a_set(ids, rng):
    shuffled = list(ids)
    rng.shuffle(shuffled)
    assert fingerprint.closure_digest(ids) == fingerprint.closure_digest(shuffled)
    more = [*ids, UUID(int=1 << 127)]
    assert (fingerprint.closure_digest(more) == fingerprint.closure_digest(ids)) is False


def test_a_tombstones_digest_is_the_hash_of_these_very_bytes():
    written = (
        f"1:164:{'cd' * 32}5:acmé1:236:0190a9c0-0000-7000-8000-00000000000064:{'ab' * 32}"
        "15:subject_request7:subject1:31:11:21:016:1767225600000001"
    )
    assert fingerprint.tombstone_digest(STONE) == hashlib.sha256(written.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"tenant_key": "acme"},
        {"seq": 3},
        {"erasure_id": UUID(int=0)},
        {"subject_hash": "ac" * 32},
        {"reason": "operator"},
        {"scope": "kinds"},
        {"memories": 4},
        {"derived": 0},
        {"provenance_edges": 1},
        {"artefacts": 1},
        {"erased_at": STONE.erased_at + timedelta(microseconds=1)},
        {"format": 2},
        {"previous": ""},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_digest_covers_every_field(change):
    changed = dataclasses.replace(STONE, **change)
    assert fingerprint.tombstone_digest(changed) != fingerprint.tombstone_digest(STONE)


def test_no_field_was_left_out_of_the_test_above():
    (mark,) = test_the_digest_covers_every_field.pytestmark
    covered = {name for change in mark.args[1] for name in change}
    assert covered | {"digest"} == {field.name for field in dataclasses.fields(Tombstone)}


def test_the_same_instant_has_the_same_digest_in_any_zone():
    elsewhere = STONE.erased_at.astimezone(timezone(timedelta(hours=5, minutes=30)))
    moved = dataclasses.replace(STONE, erased_at=elsewhere)
    assert fingerprint.tombstone_digest(moved) == fingerprint.tombstone_digest(STONE)
