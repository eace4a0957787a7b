"""Codes: what the database stores and checks too."""

from __future__ import annotations

from typing import Literal

__all__ = ["Action", "Operator", "Origin", "Reason", "Scope", "Strategy", "SubjectMatch"]

Origin = Literal["remembered", "derived"]
"""Whether a record was told, or made from others."""

Reason = Literal["subject_request", "retention_policy", "operator"]
"""Why something was erased, as the caller says."""

Scope = Literal["subject", "kinds", "record", "retention", "tenant"]
"""What an erasure started from: a person, a person's records of some kinds, one record, what was
due, everything."""

Strategy = Literal["vector", "lexical", "keyword", "hybrid", "recent"]
"""How recall ranks."""

SubjectMatch = Literal["any", "all"]
"""Whether a record is about any of the people asked for, or about all of them."""

Operator = Literal["==", "!=", "<", "<=", ">", ">="]
"""How a value of the metadata is compared."""

Action = Literal["block", "readmit", "hold", "release", "request", "complete"]
"""What was decided about a person; ``request`` and ``complete`` are of a deferred erasure."""
