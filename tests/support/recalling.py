"""Every way to ask for the same records, so that a rule is tested in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory import Recall, Record, TenantMemory

__all__ = ["everywhere", "records_of", "ways"]


def ways(text: str, vector: Sequence[float]) -> dict[str, dict[str, Any]]:
    """The arguments of ``recall`` for each strategy."""
    return {
        "lexical": {"text": text, "strategy": "lexical"},
        "keyword": {"text": text, "strategy": "keyword"},
        "hybrid": {"text": text, "embedding": vector, "strategy": "hybrid"},
        "vector": {"embedding": vector, "strategy": "vector"},
        "recent": {"strategy": "recent"},
    }


def records_of(found: Recall | list[Record]) -> list[Record]:
    """The records of an answer or of a page."""
    return found if isinstance(found, list) else [hit.record for hit in found.hits]


async def everywhere(
    tenant: TenantMemory, text: str, vector: Sequence[float], **filters: Any
) -> list[Record]:
    """Ask in every way and by listing; all find the same records, sorted here by id."""
    answers = {}
    for name, asked in ways(text, vector).items():
        answers[name] = records_of(await tenant.recall(limit=100, **asked, **filters))
    answers["listing"] = await tenant.records(limit=100, **filters)
    found = {
        name: sorted(records, key=lambda record: record.record_id)
        for name, records in answers.items()
    }
    expected = found["listing"]
    assert all(records == expected for records in found.values()), {
        name: [record.record_id for record in records] for name, records in found.items()
    }
    return expected
