"""What a detector hands over."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CLEARED", "Candidate"]

# The kind of what is none, and will be none as long as the span stays as it is. No pattern of a
# deployment's can have a kind of that name.
CLEARED = "-"


class Candidate(NamedTuple):
    """A span of the copy that a detector takes for an identifier of a kind.

    Without a kind it only looks like one: what stands around it, which masking may change, speaks
    against it.
    """

    start: int
    end: int
    kind: str
