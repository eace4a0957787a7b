"""What operators run: checks of an installation and of what it holds, and what keeps it clean."""

from __future__ import annotations

from memory.maintenance import indexes
from memory.maintenance.checking import check
from memory.maintenance.counts import fold_counts
from memory.maintenance.debts import purges_of
from memory.maintenance.reembedding import reembed
from memory.maintenance.remaining import remaining_of
from memory.maintenance.replaying import replay
from memory.maintenance.residue import Residue, Trace, find_residue
from memory.maintenance.scrubbing import Pending, Scrubbed, ScrubStep, scrub
from memory.maintenance.tombstones import export_tombstones
from memory.maintenance.verify import verify_install

__all__ = [
    "Pending",
    "Residue",
    "ScrubStep",
    "Scrubbed",
    "Trace",
    "check",
    "export_tombstones",
    "find_residue",
    "fold_counts",
    "indexes",
    "purges_of",
    "reembed",
    "remaining_of",
    "replay",
    "scrub",
    "verify_install",
]
