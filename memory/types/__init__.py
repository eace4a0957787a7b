"""What the library returns: frozen, keyword-only dataclasses.

No ``repr`` shows a text, a key or a vector, so that an object that ends up in a log or a traceback
leaks nothing. Times are timezone-aware and in UTC.
"""

from __future__ import annotations

from memory.types.codes import Action, Operator, Origin, Reason, Scope, Strategy, SubjectMatch
from memory.types.erasures import Anchor, Counts, Decision, Purged, Receipt, Release, Tombstone
from memory.types.installation import Capabilities, Check, Readiness, VectorIndex
from memory.types.records import Derived, Finding, Hit, Recall, Record, Remembered

__all__ = [
    "Action",
    "Anchor",
    "Capabilities",
    "Check",
    "Counts",
    "Decision",
    "Derived",
    "Finding",
    "Hit",
    "Operator",
    "Origin",
    "Purged",
    "Readiness",
    "Reason",
    "Recall",
    "Receipt",
    "Record",
    "Release",
    "Remembered",
    "Scope",
    "Strategy",
    "SubjectMatch",
    "Tombstone",
    "VectorIndex",
]
