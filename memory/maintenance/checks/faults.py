"""What a check can find: stable codes, what each means, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

__all__ = ["CheckReport", "Collector", "Fault", "Meaning"]

Severity = Literal["error", "warning"]
_EXAMPLES: Final = 5
_RELOAD: Final = "Triggers were off, or rows were loaded past them"


class Meaning(NamedTuple):
    """What a code says, and the remedy. Content-free."""

    severity: Severity
    what: str
    remedy: str


FAULTS: Final = MappingProxyType(
    {
        "resurrected": Meaning(
            "error",
            "records of a person stand that an erasure had removed",
            "A backup brought them back: replay the tombstones (memory.replay; known=True for"
            " rows restored into a living database).",
        ),
        "older_than_erasure": Meaning(
            "warning",
            "records about several people are older than the erasure of one of them",
            "Right where the person was related to them later; else as for resurrected.",
        ),
        "narrow_not_repeated": Meaning(
            "error",
            "an erasure of a record or of kinds is missing, and its person has older records",
            "The tombstone does not say which records it took: look at the person's export, erase"
            " again what should have stayed away, then export a new stream for later checks.",
        ),
        "chain_lost": Meaning(
            "warning",
            "the chain lacks tombstones of the stream",
            "The database was restored from an older backup, or its chain was cut: replay, and keep"
            " the stream, which alone still holds them. Once that is done, this remains for it.",
        ),
        "chain_digest": Meaning(
            "error",
            "a tombstone's digest is not the digest of its fields",
            "It was edited past the triggers: compare with the last exported stream.",
        ),
        "chain_broken": Meaning(
            "error",
            "a tombstone does not continue the one before it",
            "The chain was edited: compare with the last exported stream.",
        ),
        "chain_gap": Meaning(
            "error",
            "numbers are missing in the chain of tombstones",
            "Tombstones were removed: compare with the last exported stream.",
        ),
        "chain_head": Meaning(
            "error",
            "the head of the chain is not its newest tombstone",
            "The newest tombstones, or the head, were removed or edited.",
        ),
        "chain_anchor": Meaning(
            "error",
            "the chain does not pass through the anchor kept outside",
            "The chain was cut, computed anew or restored from an older backup: replay. An anchor"
            " newer than the backup is met by the stream only: keep a new one of this chain.",
        ),
        "evidence_unsealed": Meaning(
            "error",
            "evidence was committed and never became a tombstone",
            "The trigger seal on pending_evidence was off: run verify_install.",
        ),
        "subject_missing": Meaning(
            "error",
            "a record is about nobody: no erasure of a person reaches it",
            f"{_RELOAD}: relate it to its people, or forget_record.",
        ),
        "derived_sourceless": Meaning(
            "error",
            "a derived record names no source: no cascade reaches it",
            f"{_RELOAD}: forget_record and derive it again.",
        ),
        "subject_not_inherited": Meaning(
            "error",
            "a derived record lacks people of its sources",
            f"{_RELOAD}: forget_record and derive it again.",
        ),
        "subject_two_hashes": Meaning(
            "error",
            "a person is linked under two hashes",
            "Rows were loaded from an installation with another pepper.",
        ),
        "hash_foreign": Meaning(
            "error",
            "a person is linked under another hash than the pepper given makes",
            "Give the pepper the installation was first used with; if it is that one, rows were"
            " loaded from another installation.",
        ),
        "link_orphan": Meaning(
            "error", "a link to a person has no record", f"{_RELOAD}: delete the row as the owner."
        ),
        "edge_orphan": Meaning(
            "error",
            "a provenance edge lacks one of its records",
            f"{_RELOAD}: forget_record what was derived from it.",
        ),
        "posting_orphan": Meaning(
            "error",
            "words of a record that is gone are still stored",
            f"{_RELOAD}: delete the rows as the owner.",
        ),
        "hold_missing": Meaning(
            "error",
            "a record about a person under legal hold is not held: it can be erased",
            f"{_RELOAD}: hold the person again.",
        ),
        "hold_stale": Meaning(
            "warning",
            "a record is held and nobody it is about is: it cannot be erased",
            "Hold and release one of its people.",
        ),
        "decision_not_enforced": Meaning(
            "error",
            "a person was blocked or put under hold, and is not",
            "The flag was cleared past the triggers: block or hold the person again.",
        ),
        "flag_undecided": Meaning(
            "warning",
            "a person is blocked or held, and no decision says so",
            "The flag was set past the functions: decide it, or readmit or release.",
        ),
        "postings_missing": Meaning(
            "error",
            "a record has words and none is stored: recall by words misses it",
            f"{_RELOAD}: remember it again.",
        ),
        "artefact_orphan": Meaning(
            "error",
            "an artefact is registered for a record that is gone: nobody will purge it",
            f"{_RELOAD}: purge it from its index by hand.",
        ),
        "purge_stale": Meaning(
            "warning",
            "an external index has owed a purge for more than a day",
            "Call purge_outstanding with that index registered.",
        ),
        "counts_off": Meaning(
            "error",
            "the counts of records and words are not those of the rows",
            f"{_RELOAD}: ranking by words is off until the counts are corrected.",
        ),
    }
)
"""Every code a check can report. A code keeps its meaning once it was released."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One kind of fault in one tenant: how often, and up to five places.

    ``examples`` are record ids or positions in the chain, never content.

    >>> from memory import Fault
    >>> fault = Fault(code="posting_orphan", tenant_key="shop", count=2)
    >>> fault.severity, fault.what
    ('error', 'words of a record that is gone are still stored')
    """

    code: str
    tenant_key: str = field(repr=False)
    count: int
    examples: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """Whether a promise is broken (``error``) or somebody has to look (``warning``)."""
        return FAULTS[self.code].severity

    @property
    def what(self) -> str:
        """What is wrong, in words."""
        return FAULTS[self.code].what

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return FAULTS[self.code].remedy


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckReport:
    """What a check saw: how many tenants and rows, and what was wrong, by tenant and code.

    >>> import memory
    >>> report = await memory.check(owner_url)
    >>> report.tenants, report.rows, report.ok
    (0, 0, True)
    """

    tenants: int
    rows: int
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no promise is broken; there may be warnings."""
        return all(fault.severity != "error" for fault in self.faults)


class Collector:
    """Gathers faults; keeps a count and a few examples of each, however many there are."""

    def __init__(self) -> None:
        self.rows = 0
        self._found: dict[tuple[str, str], tuple[int, list[str]]] = {}

    def add(self, code: str, tenant_key: str, count: int, *examples: object) -> None:
        """Note faults of a kind."""
        if not count:
            return
        before, kept = self._found.get((tenant_key, code), (0, []))
        kept += [str(item) for item in examples[: _EXAMPLES - len(kept)]]
        self._found[tenant_key, code] = (before + count, kept)

    def faults(self) -> tuple[Fault, ...]:
        """Return what was noted, by tenant and code."""
        return tuple(
            Fault(code=code, tenant_key=tenant_key, count=count, examples=tuple(examples))
            for (tenant_key, code), (count, examples) in sorted(self._found.items())
        )
