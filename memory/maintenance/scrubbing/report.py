"""What a scrub did, and what it could not reach. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from memory import rendering

__all__ = ["Pending", "ScrubStep", "Scrubbed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScrubStep:
    """One thing that was done to one object.

    ``lock`` is the strongest table lock that it took (``none`` for the server's files), held for at
    most ``seconds``; ``waited`` are seconds spent on attempts that did not get it. Sizes are in
    bytes, None where they mean nothing. With ``done`` false, ``detail`` says why.

    >>> from memory import maintenance
    >>> scrubbed = await maintenance.scrub(owner_url, wal=False)
    >>> step = scrubbed.steps[0]
    >>> step.action, step.done
    ('vacuum', True)
    """

    action: str
    target: str
    lock: str
    seconds: float
    waited: float = 0.0
    bytes_before: int | None = None
    bytes_after: int | None = None
    done: bool = True
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """What still holds old bytes, or may: ``code`` is stable, ``remedy`` says what to do.

    >>> from memory import maintenance
    >>> scrubbed = await maintenance.scrub(owner_url, wal=False)
    >>> [item.remedy for item in scrubbed.pending if item.code == "wal"]
    ['scrub with wal=True']
    """

    code: str
    detail: str
    remedy: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scrubbed:
    """The report of a scrub.

    >>> from memory import maintenance
    >>> scrubbed = await maintenance.scrub(owner_url, wal=False)
    >>> scrubbed.complete, "wal" in scrubbed.codes
    (False, True)
    """

    steps: tuple[ScrubStep, ...]
    pending: tuple[Pending, ...]

    @property
    def complete(self) -> bool:
        """Nothing is known to be left on this server. Of copies elsewhere no scrub knows."""
        return not self.pending

    @property
    def codes(self) -> frozenset[str]:
        """The codes of what is pending."""
        return frozenset(item.code for item in self.pending)

    def _repr_html_(self) -> str:
        steps = rendering.table(
            ("action", "target", "lock", "seconds", "bytes", "detail"),
            [(s.action, s.target, s.lock, s.seconds, _change(s), s.detail) for s in self.steps],
            caption="complete" if self.complete else "incomplete",
        )
        if self.complete:
            return steps
        rows = [(item.code, item.detail, item.remedy) for item in self.pending]
        return steps + rendering.table(("pending", "detail", "remedy"), rows)


def _change(step: ScrubStep) -> str:
    if step.bytes_before is None or step.bytes_after is None:
        return ""
    return f"{step.bytes_before:,} to {step.bytes_after:,}"
