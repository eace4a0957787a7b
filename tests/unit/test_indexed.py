"""What is made of the rows about HNSW indexes: which of them a search may use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from memory.repositories import hnsw, measuring

FULL = "(embedding)::vector(3)"
HALF = "(l2_normalize((embedding)::vector(3)))::halfvec(3)"


def row(**changes):
    given = {
        "index_name": "by_meaning",
        "index_valid": True,
        "index_class": "vector_cosine_ops",
        "index_expression": FULL,
        "index_predicate": "(embedding_dims = 3)",
        "index_options": None,
        "index_bytes": 8192,
        "server": "18.4",
        "version": "0.8.5",
        "extension": "public",
    }
    return SimpleNamespace(**{**given, **changes})


HALVED = {"index_class": "halfvec_cosine_ops", "index_expression": HALF}


def test_an_index_is_known_by_its_definition_wherever_pgvector_is():
    (found,) = hnsw.indexes([row()])
    assert (found.name, found.dimensions, found.halfvec, found.valid) == ("by_meaning", 3, False, 1)
    assert (found.m, found.ef_construction, found.bytes) == (16, 64, 8192)
    (given,) = hnsw.indexes([row(index_options=["m=8", "ef_construction=200"])])
    assert (given.m, given.ef_construction) == (8, 200)
    (half,) = hnsw.indexes([row(**HALVED)])
    assert (half.dimensions, half.halfvec) == (3, True)
    assert hnsw.indexes([row(index_expression='(embedding)::"of ours".vector(3)')])


@pytest.mark.parametrize(
    "changes",
    [
        {"index_name": None},
        {"index_class": "vector_l2_ops"},
        {"index_class": "halfvec_cosine_ops"},
        {"index_expression": None},
        {"index_expression": "(embedding)::vector(3) "},
        {"index_expression": HALF},
        {**HALVED, "index_expression": HALF.replace("halfvec(3)", "halfvec(4)")},
        {"index_predicate": None},
        {"index_predicate": "(embedding_dims = 4)"},
    ],
)
def test_another_index_is_left_alone(changes):
    assert hnsw.indexes([row(**changes)]) == ()


def test_indexes_are_in_order_of_length_the_exact_before_the_halved():
    five = {
        "index_expression": "(embedding)::vector(5)",
        "index_predicate": "(embedding_dims = 5)",
    }
    rows = [row(**five), row(**HALVED, index_name="a"), row(index_name="c"), row(index_name="b")]
    found = [(index.dimensions, index.name) for index in hnsw.indexes(rows)]
    assert found == [(3, "b"), (3, "c"), (3, "a"), (5, "by_meaning")]


def test_halves_are_of_the_direction_only():
    full = "v::public.vector(3)"
    assert hnsw.indexed("v", "public", 3, halfvec=False) == full
    halved = f"public.l2_normalize({full})::public.halfvec(3)"
    assert hnsw.indexed("v", "public", 3, halfvec=True) == halved


async def measured(monkeypatch, *rows):
    async def fetch(*_):
        return list(rows)

    monkeypatch.setattr(measuring, "fetch", fetch)
    return await measuring.measure(None)


@pytest.mark.parametrize(
    ("version", "iterative"), [("0.7.4", False), ("0.8.0", True), ("0.10.0", True), ("1.0", True)]
)
async def test_indexes_serve_from_the_pgvector_on_whose_scans_go_on(
    monkeypatch, version, iterative
):
    found = await measured(monkeypatch, row(version=version))
    assert (found.iterative, list(found.indexes)) == (iterative, [3] if iterative else [])
    assert found.capabilities.hnsw_dimensions == tuple(found.indexes)
    assert (found.capabilities.vector_search, found.extension) == ("pgvector", "public")


async def test_an_index_that_is_not_whole_serves_nobody_and_the_exact_comes_first(monkeypatch):
    rows = [row(index_name="a", index_valid=False), row(**HALVED), row(index_name="b")]
    assert (await measured(monkeypatch, *rows)).indexes[3].name == "b"
    assert (await measured(monkeypatch, *rows[:2])).indexes[3].halfvec
    assert (await measured(monkeypatch, rows[0])).indexes == {}


async def test_without_pgvector_vectors_are_compared_in_process(monkeypatch):
    found = await measured(monkeypatch, row(version=None, extension=None, index_name=None))
    assert (found.extension, found.iterative, found.indexes) == (None, False, {})
    assert found.capabilities.vector_search == "in-process"
