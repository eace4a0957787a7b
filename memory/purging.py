"""Asking an external index to purge, and what counts as its answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from memory.ports import DerivedIndex

__all__ = ["BATCH", "confirmed"]

BATCH = 1_000

_logger = logging.getLogger("memory.erasure")


async def confirmed(index: DerivedIndex, artefact_ids: Sequence[str]) -> set[str]:
    """Ask for a purge in batches; return the ids that are gone.

    A batch counts when ``purge`` returned and ``present``, where the index has it, no longer
    reports the id. What an index raises is logged by its class only: a message may quote an id.
    """
    gone: set[str] = set()
    for start in range(0, len(artefact_ids), BATCH):
        batch = list(artefact_ids[start : start + BATCH])
        try:
            gone |= await _purged(index, batch)
        except Exception as error:  # whatever a host's index raises, the debt stays
            _logger.warning("index %s did not purge: %s", index.name, type(error).__name__)
            break
    return gone


async def _purged(index: DerivedIndex, batch: list[str]) -> set[str]:
    await index.purge(batch)
    present = getattr(index, "present", None)
    remaining = set() if present is None else set(await present(batch))
    return set(batch) - remaining
