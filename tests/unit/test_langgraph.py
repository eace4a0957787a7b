"""LangGraph's store: operations that no store knows."""

from __future__ import annotations

from typing import Any

import pytest

from memory import InvalidInputError, Memory
from memory.integrations.langgraph import ErasableStore


async def test_what_no_operation_can_mean_is_refused() -> None:
    store = ErasableStore(Memory(subject_pepper="pepper").for_tenant("acme"), subjects=0)
    await store.aput(("a",), "k", {})
    with pytest.raises(ValueError, match="Unknown operation type"):
        await store.abatch(["get"])
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep or 1}
    for call, field in (
        (store.asearch((), filter=deep), "filter"),
        (store.asearch((), filter=["n"]), "filter"),  # type: ignore[arg-type]
        (store.asearch((), filter={1: 2}), "where.0.0"),  # type: ignore[dict-item]
        (store.asearch((), filter={"n": {1: 2}}), "where.0.0"),
        (store.asearch((), offset=-1), "offset"),
        (store.aput(("a",), "k", {"n": 1}, ttl=1e300), "ttl"),
        (store.aput(("a",), "k", {"n": 1}, ttl=float("nan")), "ttl"),
        (store.aput(("a",), "k", {"n": 1}, ttl="5"), "ttl"),
        (store.aput(("a",), "k", {"n": 1}, ttl=True), "ttl"),
        (store.aput(("a",), "k", {"n": {1}}), "value.0"),
        (store.aput(("a",), "k" * 1024, {}), "key"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            await call
        assert refused.value.field == field
    assert (await store.aget(("a",), "k")).value == {}
