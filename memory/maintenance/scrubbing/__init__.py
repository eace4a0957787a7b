"""Removing deleted bytes from PostgreSQL's files."""

from __future__ import annotations

from memory.maintenance.scrubbing.report import Pending, Scrubbed, ScrubStep
from memory.maintenance.scrubbing.run import scrub

__all__ = ["Pending", "ScrubStep", "Scrubbed", "scrub"]
