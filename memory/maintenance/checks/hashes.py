"""Whether people are linked under the hashes that the pepper in use gives them."""

from __future__ import annotations

from memory.database import Access
from memory.fingerprint import subject_hash
from memory.maintenance.checks.faults import Collector
from memory.maintenance.due import everybody

__all__ = ["check_hashes"]


async def check_hashes(access: Access, tenant_key: str, pepper: bytes, found: Collector) -> None:
    """Compute everybody's hash anew."""
    async for subject_key, linked in everybody(access, tenant_key):
        if subject_hash(tenant_key, subject_key, pepper) != linked:
            found.add("hash_foreign", tenant_key, 1)
