"""What the answer of a verb says about it to an operator: codes and counts. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from memory.types import Derived, Finding, Purged, Recall, Receipt, Release, Remembered

__all__ = ["OURS", "Outcome", "Values", "outcome"]

Values = dict[str, str | int | bool]
OURS: Final = "erasable_memory"
"""What the names begin with that OpenTelemetry's conventions do not know."""

_ROWS, _BATCH = "db.response.returned_rows", "db.operation.batch.size"
# A host's redactor may say anything; a kind is a code, and what is none may be a value.
_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


@dataclass(kw_only=True, slots=True)
class Outcome:
    """``attributes`` of the span; ``counts`` are a counter's name, an amount and its labels."""

    attributes: Values = field(default_factory=dict, repr=False)
    counts: list[tuple[str, int, Values]] = field(default_factory=list, repr=False)
    strategy: str | None = field(default=None, repr=False)

    def count(self, name: str, amount: int, **labels: str) -> None:
        """Have a counter of ours grow."""
        named: Values = {f"{OURS}.{label}": value for label, value in labels.items()}
        self.counts.append((f"{OURS}.{name}", amount, named))

    def say(self, **values: str | int | bool) -> None:
        """Set attributes of ours."""
        self.attributes.update({f"{OURS}.{name}": value for name, value in values.items()})


def outcome(answer: object) -> Outcome:
    """Return what is to be said of an answer; of most there is nothing."""
    found = Outcome()
    if isinstance(answer, Receipt):
        _erased(found, answer)
    elif isinstance(answer, Release):
        for receipt in answer.receipts:
            _erased(found, receipt)
        found.say(erasures=len(answer.receipts))
    elif isinstance(answer, Purged):
        found.say(purges_done=answer.settled, complete=not answer.outstanding)
    elif isinstance(answer, Recall):
        _recalled(found, answer)
    elif isinstance(answer, Remembered | Derived):
        _masked(found, answer.redactions)
    elif isinstance(answer, list):
        _listed(found, answer)
    return found


def _erased(found: Outcome, receipt: Receipt) -> None:
    counts = receipt.counts
    found.say(
        reason=receipt.reason,
        scope=receipt.scope,
        memories=counts.memories,
        derived=counts.derived,
        purges_owed=counts.artefacts,
        held=receipt.held,
        complete=receipt.complete,
        dry_run=receipt.dry_run,
    )
    if receipt.dry_run:
        return
    what = {"reason": receipt.reason, "scope": receipt.scope}
    kept = receipt.held or receipt.deferred
    state = "held" if kept else "complete" if receipt.complete else "outstanding"
    found.count("erasures", 1, **what, outcome=state)
    found.count("records.erased", counts.memories, **what, origin="remembered")
    found.count("records.erased", counts.derived, **what, origin="derived")
    found.count("purges.owed", counts.artefacts)


def _recalled(found: Outcome, answer: Recall) -> None:
    found.strategy = answer.strategy
    found.say(strategy=answer.strategy, exact=answer.exact)
    found.attributes[_ROWS] = len(answer.hits)
    found.count("recall.hits", len(answer.hits), strategy=answer.strategy)
    found.count("recall.empty", int(not answer.hits), strategy=answer.strategy)


def _listed(found: Outcome, answer: list[object]) -> None:
    stored = [item for item in answer if isinstance(item, Remembered)]
    if not stored:
        found.attributes[_ROWS] = len(answer)
        return
    if len(stored) > 1:
        found.attributes[_BATCH] = len(stored)
    _masked(found, (finding for item in stored for finding in item.redactions))


def _masked(found: Outcome, findings: Iterable[Finding]) -> None:
    kinds = Counter(_code(finding.kind) for finding in findings)
    found.say(redactions=kinds.total())
    for kind, count in kinds.items():
        found.count("redactions", count, kind=kind)


def _code(kind: object) -> str:
    return kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "other"
