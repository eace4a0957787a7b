"""Results: frozen, keyword-only, and silent about what they hold."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args
from uuid import UUID

import pytest

from memory import Item, errors, graphs, portability, ports, types
from memory.redaction import Redacted
from memory.stores.in_memory import erasing, shelf

PUBLIC = [
    item
    for module in (types, ports, portability, graphs)
    for item in vars(module).values()
    if inspect.isclass(item) and dataclasses.is_dataclass(item)
] + [Item, Redacted]
INTERNAL = [shelf.Row, shelf.Shelf, erasing._Plan]
PLANTED = "planted"


# What a store or a worker keeps its place in; all else is passed around.
CHANGING = {"Outcome", "Owed", "Row", "Shelf", "Stream", "_Tally", "_Work"}


def test_all_that_is_passed_around_is_frozen_and_keyword_only():
    loaded = [module for name, module in sys.modules.items() if name.startswith("memory.")]
    classes = {
        item
        for module in loaded
        for item in vars(module).values()
        if dataclasses.is_dataclass(item)
        and inspect.isclass(item)
        and item.__module__.startswith("memory.")
    }
    assert classes > {*PUBLIC, *INTERNAL}
    for cls in classes:
        parameters = inspect.signature(cls).parameters.values()
        named = {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
        frozen = cls.__dataclass_params__.frozen
        assert (named and frozen) or (cls.__name__ in CHANGING and not frozen), cls.__name__


CONTENT = {
    "artefact_id",
    "bystander_keys",
    "embedding",
    "key",
    "metadata",
    "record_key",
    "subject_key",
    "subject_keys",
    "tenant_key",
    "terms",
    "text",
}


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_no_field_that_can_hold_content_is_in_a_repr(cls):
    shown = {field.name for field in dataclasses.fields(cls) if field.repr}
    assert not shown & CONTENT


def test_the_fields_that_hold_content_are_known_by_these_names():
    named = {field.name for cls in PUBLIC for field in dataclasses.fields(cls)}
    assert named >= CONTENT - {"artefact_id", "subject_key"}


@pytest.mark.parametrize("cls", INTERNAL, ids=lambda cls: cls.__name__)
def test_what_a_store_holds_has_no_repr_of_its_own(cls):
    assert cls.__repr__ is object.__repr__


def test_counts_add_up():
    counts = types.Counts(memories=2, derived=3, provenance_edges=9, artefacts=1)
    assert counts.records == 5
    assert types.Counts().records == 0


def receipt(**changes):
    given = {
        "erasure_id": UUID(int=1),
        "tenant_key": PLANTED,
        "subject_hashes": ("ab" * 32,),
        "reason": "operator",
        "scope": "subject",
        "counts": types.Counts(memories=3),
        "kinds": {"episodic": 3},
        "cascade_depth": 0,
        "bystanders": 1,
        "complete": True,
        "closure": "cd" * 32,
        "erased_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return types.Receipt(**{**given, **changes})


def test_a_receipt_reads_as_a_table_without_a_key():
    html = receipt(bystander_keys=(PLANTED,))._repr_html_()
    assert PLANTED not in html
    assert "<table>" in html
    assert "yes" in html
    plan = receipt(dry_run=True, complete=False)
    assert "dry run" in plan._repr_html_()
    assert str(plan.erasure_id) not in plan._repr_html_()  # it is of no erasure
    assert str(plan.erasure_id) in html
    assert "index" in receipt(outstanding=("index",), complete=False)._repr_html_()


def test_a_receipt_says_at_once_what_became_of_it():
    assert receipt().title == "Erased"
    assert receipt(dry_run=True, complete=False).title == "Would be erased"
    assert receipt(outstanding=("index",), complete=False).title == "Erased, not complete"
    assert receipt(deferred=True, complete=False).title == "Deferred by a legal hold"


def test_a_tombstone_reads_as_a_table_without_a_key():
    stone = types.Tombstone(
        tenant_key=PLANTED,
        seq=7,
        erasure_id=UUID(int=1),
        subject_hash="ab" * 32,
        reason="operator",
        scope="subject",
        memories=3,
        derived=2,
        provenance_edges=4,
        artefacts=0,
        erased_at=datetime(2026, 1, 1, tzinfo=UTC),
        format=1,
        previous="",
        digest="cd" * 32,
    )
    html = stone._repr_html_()
    assert PLANTED not in html
    assert "Tombstone 7" in html
    assert "none: the first" in html
    assert "cdcdcdcdcdcdcdcd…" in replace(stone, previous="cd" * 32)._repr_html_()


def test_errors_survive_a_trip_to_another_process():
    for error in (
        errors.InvalidInputError("text", "must not be empty"),
        errors.TenantRequiredError("tenant_key", "must be there"),
        errors.PartialErasureError("owing", receipt()),
        errors.LegalHoldError("held", receipt()),
        errors.ConflictError("taken"),
    ):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_every_error_has_its_place_in_the_tree():
    for name in errors.__all__:
        error = getattr(errors, name)
        assert issubclass(error, errors.MemoryServiceError)
        assert name in errors.__doc__
        assert not issubclass(error, MemoryError)
    assert issubclass(errors.InvalidInputError, ValueError)


def test_codes_of_evidence_are_closed_lists():
    assert get_args(types.Reason) == ("subject_request", "retention_policy", "operator")
    assert get_args(types.Scope) == ("subject", "kinds", "record", "retention", "tenant")


def test_a_draft_knows_its_length():
    draft = ports.Draft(
        record_id=UUID(int=1),
        own_id=False,
        origin="remembered",
        kind="episodic",
        text="a a b",
        metadata={},
        redacted=(),
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        dated=False,
        terms={"a": 2, "b": 1},
    )
    assert draft.length == 3
    assert "a a b" not in repr(draft)
