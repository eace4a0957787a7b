"""A certificate of erasure: what the database recorded, on one page to print and sign. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from memory import certifiable, entries, pages, tombstones, validation
from memory.certifiable import IndexState, Remaining
from memory.errors import InvalidInputError
from memory.types import Anchor, Reason, Receipt, Scope, Tombstone

__all__ = ["certificate"]

_LONGEST: Final = 80  # characters of a line that the issuer writes
_TENANT: Final = 256  # characters that are shown of a key
_WHOLE: Final = frozenset({"subject", "tenant"})
_SWEPT: Final = frozenset({"retention", "tenant"})
_REASONS: Final[Mapping[Reason, str]] = {
    "subject_request": "a request of the person, as the caller stated",
    "retention_policy": "a retention policy, as the caller stated",
    "operator": "an operator's decision, or a statement in SQL that gave no reason",
}
_SCOPES: Final[Mapping[Scope, str]] = {
    "subject": "everything about the person, and everything derived from it",
    "kinds": "some kinds of memory about the person, not all, and what was derived from those",
    "record": "single records about the person, not all, and what was derived from those",
    "retention": "what had expired about the person, not all, and what was derived from it",
    "tenant": "everything of the tenant, the person's included",
}


def certificate(
    evidence: Tombstone | Sequence[Tombstone],
    *,
    receipt: Receipt | None = None,
    indexes: Sequence[IndexState] | None = None,
    deferred: bool | None = None,
    remaining: Remaining | None = None,
    anchor: Anchor | None = None,
    controller: str = "",
    reference: str = "",
    backups_until: date | None = None,
    issued_at: datetime | None = None,
) -> str:
    """Return an HTML page, to be printed on one sheet of A4, that says what was erased.

    ``evidence`` are the tombstones that one erasure left of one person: most often one, several
    where a hold or a sweep spread it over transactions. With a ``receipt`` it may be all that the
    person has: those of the receipt's erasure are taken. What is outstanding is said by ``indexes``
    (:func:`memory.maintenance.purges_of` reads it from the database), and of indexes that are not
    among them by the ``receipt``, which also says what a hold kept; without one, ``deferred`` says
    whether the erasure still waits for a release, and ``remaining`` which records of before it
    are there (:func:`memory.maintenance.remaining_of`): what a hold had a sweep pass by waits for
    no release. An erasure that is incomplete, or found nothing, or is narrower than a person, or of
    which nobody says what is outstanding, gives a page that says so in its title.
    ``anchor`` is a position kept elsewhere, at the newest tombstone or after it; None is the
    tombstone's own, since the signed page is an anchor itself. ``controller`` and ``reference`` are
    lines of yours, at most 80 characters; ``backups_until`` is the day by which the last backup
    that may hold the data is gone.

    The page names the person by the hash, holds no content, and fetches nothing. It states what
    the database recorded, not that a law was met.

    Raises ``InvalidInputError``: for a dry run, which erased nothing; for tombstones of several
    people, of several erasures without a receipt, or whose digest is not that of their fields; for
    a receipt of another erasure or person, or with another digest at its anchor or other counts;
    for a state of an index that is none; and for an anchor that does not fit.

    >>> import memory
    >>> shop = memory.Memory().for_tenant("shop")
    >>> earlier = await shop.forget(subject_key="customer:dana")
    >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
    >>> receipt = await shop.forget(subject_key="customer:dana")
    >>> stones = await shop.erasure_history(subject_key="customer:dana")
    >>> page = memory.certificate(stones, receipt=receipt, reference="case 4711")
    >>> "<h1>Certificate of erasure</h1>" in page
    True
    """
    receipt = certifiable.checked_receipt(receipt)
    stones = certifiable.of_one_erasure(evidence, receipt)
    certifiable.check_fit(receipt, stones)
    found = _Found(
        stones=stones,
        anchor=certifiable.checked_anchor(anchor, stones[-1]),
        indexes=certifiable.indexes(receipt, indexes, stones),
        held=0 if receipt is None else receipt.held,
        waits=_waits(receipt, deferred, stones[-1].scope if remaining is None else None),
        remaining=_remaining(remaining),
    )
    title, verdict, fine = found.verdict()
    sections = [
        ("Asked", [*_given(controller, reference), *found.asked()]),
        ("Recorded by the database", found.recorded()),
        ("Elsewhere", found.elsewhere()),
        ("Evidence", found.evidence()),
    ]
    limits = pages.limits(_day(backups_until))
    issued = "" if issued_at is None else _moment(validation.moment(issued_at, "issued_at"))
    verifying = pages.verifying(f"{found.anchor.seq}:{found.anchor.digest}")
    return pages.page(
        title,
        verdict,
        fine=fine,
        sections=sections,
        notes=[("To verify", verifying), ("What this does not say", limits)],
        issued=issued,
        data=tombstones.line(stones[-1]),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """What there is to be said; None for the indexes, who waits, or what is left: nobody says."""

    stones: tuple[Tombstone, ...] = field(repr=False)
    anchor: Anchor
    indexes: tuple[IndexState, ...] | None
    held: int
    waits: bool | None
    remaining: Remaining

    def _total(self, name: str) -> int:
        return sum(getattr(stone, name) for stone in self.stones)

    def verdict(self) -> tuple[str, str, bool]:
        """Return the title, what it comes to, and whether that is the end of it."""
        scope = self.stones[-1].scope
        owing = [state for state in self.indexes or () if state.owed != 0]
        left = []
        if self.held or self.waits:
            count = (
                pages.plural(self.held, "record is", "records are") if self.held else "records are"
            )
            left.append(f"{count} kept by a legal hold, or wait for the end of one")
        if self.remaining.due:
            count = pages.plural(self.remaining.due, "record", "records")
            are = "is" if self.remaining.due == 1 else "are"
            left.append(f"{count} of before it {are} there")
        if owing:
            number = pages.plural(len(owing), "external index has", "external indexes have")
            left.append(f"{number} not confirmed that every copy is gone")
        if left:
            said = f"Not complete: {'; '.join(left)}. The rest was removed, as recorded below."
            return "Certificate of an incomplete erasure", said, False
        took = self._total("memories") + self._total("derived")
        unsaid = ["a legal hold keeps more"] if self.waits is None else []
        if self.indexes is None:
            unsaid.append("external indexes have purged their copies")
        if self.remaining.unclear:
            count = pages.plural(self.remaining.unclear, "record", "records")
            were = "is there was" if self.remaining.unclear == 1 else "are there were"
            unsaid.append(f"{count} of before it that {were} to go with it")
        if unsaid:
            did = "" if took else ", which found nothing to remove"
            said = (
                f"Recorded by the database{did}. Not stated here: whether {', or '.join(unsaid)}."
            )
            return "Certificate of a recorded erasure", said, False
        if not took:
            said = (
                "Nothing was removed: the database held nothing that matched. A key that is"
                " misspelt, or of another tenant, gives this page too."
            )
            return "Certificate that nothing was found", said, False
        if scope not in _WHOLE:
            said = "Complete for what was asked, which was not everything about the person."
            return "Certificate of a limited erasure", said, True
        return "Certificate of erasure", "Complete: nothing of this erasure is outstanding.", True

    def asked(self) -> pages.Rows:
        stone = self.stones[-1]
        return [
            ("Scope", f"{_SCOPES[stone.scope]} [{stone.scope}]"),
            ("Reason", f"{_REASONS[stone.reason]} [{stone.reason}]"),
            ("Person, by hash", pages.Code(stone.subject_hash)),
            ("Erasure", pages.Code(str(stone.erasure_id))),
        ]

    def recorded(self) -> pages.Rows:
        first, last = self.stones[0], self.stones[-1]
        # The digest covers the microseconds.
        when = _moment(last.erased_at, "%H:%M:%S.%f")
        if first is not last:
            when = f"{_moment(first.erased_at)} to {when}, in {len(self.stones)} transactions"
        return [
            ("When", when),
            ("Memories removed", str(self._total("memories"))),
            ("Derived records removed", str(self._total("derived"))),
            ("Links of derivation removed", str(self._total("provenance_edges"))),
            ("Copies elsewhere", str(self._total("artefacts"))),
        ]

    def elsewhere(self) -> pages.Rows:
        if self.indexes is None:
            return [("External indexes", "not stated here")]
        if not self.indexes:
            return [("External indexes", "none had a copy registered")]
        states = sorted(self.indexes, key=lambda state: (state.owed == 0, state.adapter))
        return pages.few([(pages.short(state.adapter), _did(state)) for state in states])

    def evidence(self) -> pages.Rows:
        stone = self.stones[-1]
        rows: pages.Rows = [
            ("Tenant", pages.Code(pages.short(stone.tenant_key, _TENANT))),
            ("Position in its chain", f"{stone.seq} (format {stone.format})"),
            ("Digest", pages.Code(stone.digest)),
            ("Digest before it", pages.Code(stone.previous or "none: the first")),
        ]
        if len(self.stones) > 1:
            earlier = [str(item.seq) for item in self.stones[:-1]]
            rows.append(("Earlier positions", pages.listed(earlier)))
        own = self.anchor.seq == stone.seq
        anchor = "this page: its position and digest" if own else f"position {self.anchor.seq}"
        rows.append(("Anchor", anchor))
        if not own:
            rows.append(("Its digest", pages.Code(self.anchor.digest)))
        return rows


def _did(state: IndexState) -> str:
    said = "purged, as it confirmed" if state.purged is None else f"{state.purged} purged"
    if state.purged_at is not None:
        said += f", last {_moment(state.purged_at)}"
    if state.owed != 0:
        count = "" if state.owed is None else f"{state.owed} "
        said = f"{count}outstanding" + ("" if state.purged is None else f"; {said}")
    return said


def _waits(receipt: Receipt | None, deferred: object, unsaid: Scope | None) -> bool | None:
    said = None if deferred is None else validation.flag(deferred, "deferred")
    if receipt is not None:
        return receipt.deferred or bool(said)
    # No decision says what a hold had a sweep pass by.
    return None if unsaid in _SWEPT and not said else said


def _remaining(given: object) -> Remaining:
    if given is None:
        return Remaining(due=0)
    if not isinstance(given, Remaining) or not all(map(entries.is_count, astuple(given))):
        raise InvalidInputError("remaining", "must be what remaining_of returned, or None")
    return given


def _given(controller: str, reference: str) -> pages.Rows:
    lines = {"Controller": controller, "Reference": reference}
    for name, value in lines.items():
        if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
            raise InvalidInputError(name.lower(), f"must be one line of at most {_LONGEST}")
    return [(name, value) for name, value in lines.items() if value]


def _day(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, date) or isinstance(value, datetime):
        raise InvalidInputError("backups_until", "must be a date")
    return value.isoformat()


def _moment(value: datetime, time: str = "%H:%M:%S") -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d {time}} UTC"
