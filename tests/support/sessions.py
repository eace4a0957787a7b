"""Sessions of the OpenAI Agents SDK, as the tests open and fill them."""

from __future__ import annotations

from typing import Any

from memory import Memory, TenantMemory
from memory.integrations.openai_agents import MemorySession
from stores import image

ANN, BOB = "customer:ann", "customer:bob"


def session(
    memory: TenantMemory, name: str = "s1", people: Any = ANN, **more: Any
) -> MemorySession:
    return MemorySession(name, memory, subject_keys=people, **more)


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


async def neighbours(stored: Memory) -> list[MemorySession]:
    """Another session of the same person, another person's of the same name, another tenant's."""
    shop = stored.for_tenant("shop")
    found = [session(shop, "s2"), session(shop, people=BOB), session(stored.for_tenant("bank"))]
    for conversation in found:
        await conversation.add_items(said("zebra one", "zebra two"))
    return found


async def rows(superuser: Any) -> set[str]:
    """Every row that holds content, as it is."""
    found = [await image(superuser, tenant) for tenant in ("shop", "bank")]
    kept = ("records", "record_subjects", "provenance", "postings")
    return {row for tables in found for name in kept for row in tables[name]}
