"""The verbs: they check, redact, embed, and hand over to a store. No SQL."""

from __future__ import annotations

from memory.service.items import Item
from memory.service.memory import Memory, TenantMemory

__all__ = ["Item", "Memory", "TenantMemory"]
