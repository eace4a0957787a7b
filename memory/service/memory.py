"""``Memory`` and ``TenantMemory``: the verbs a host calls, over any store."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from memory import telemetry, validation
from memory.service.exporting import Exporting
from memory.service.holding import Holding
from memory.service.reading import Reading
from memory.service.retaining import Retaining
from memory.service.writing import Writing

__all__ = ["Memory", "TenantMemory"]

P = ParamSpec("P")
R = TypeVar("R")


@telemetry.observed(streams=("export",))
class Memory(Writing, Reading, Holding, Retaining, Exporting):
    """Agent memory that can be erased.

    ``Memory()`` alone works, in this process and without a server. ``store`` is where records live;
    ``embedder`` makes vectors for recall by meaning; ``redactor`` masks identifiers before
    anything is embedded or written (None, which must be asked for, masks nothing); ``indexes`` hold
    artefacts outside the database; ``events`` takes one content-free event per erasure (default:
    the logger ``memory.erasure``); ``subject_pepper`` keys the hashes that evidence holds;
    ``postings=False`` stores no words, which makes writing cheaper and recall by words impossible:
    for a host that recalls by person, time or vector only. ``clock`` returns the time, with its
    zone. An index, or the event sink, that does not answer within ``purge_timeout`` has failed: its
    call is cancelled and the debt stays.

    The tenant comes first in every verb; everything else is keyword-only. Safe for many tasks of
    one event loop; make one, with a store of its own, per loop. It connects on first use;
    ``async with`` closes what it opened. Every argument is checked before anything is sent:
    ``InvalidInputError`` names the field and the rule, never the value. Each call is a line of the
    logger ``memory.calls`` at DEBUG and, where OpenTelemetry is installed, a span and metrics.

    >>> from memory import Memory
    >>> async with Memory(subject_pepper="from a secret manager") as service:
    ...     told = await service.remember("shop", text="Dana moved", subject_keys="customer:dana")
    ...     receipt = await service.forget("shop", subject_key="customer:dana")
    >>> receipt.complete
    True
    """

    def for_tenant(self, tenant_key: str) -> TenantMemory:
        """Return the same verbs with the tenant bound.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> (await shop.recall(text="anything")).note
        '...nothing found: this tenant holds no records'
        """
        return TenantMemory(self, validation.tenant(tenant_key))

    async def close(self) -> None:
        """Close what the store opened; a host's own engine stays open.

        Calls under way go on to their end. Nothing is refused afterwards: a later call opens
        connections again, which another ``close`` closes.

        >>> from memory import Memory
        >>> service = Memory()
        >>> told = await service.remember("shop", text="Dana moved", subject_keys="dana")
        >>> await service.close()
        >>> len(await service.records("shop"))
        1
        """
        await self._store.close()

    async def __aenter__(self) -> Self:
        """Return this memory; nothing is opened before the first call."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close what the store opened, whatever was raised inside."""
        await self.close()


def _bound(
    verb: Callable[Concatenate[Memory, str, P], R],
) -> Callable[Concatenate[TenantMemory, P], R]:
    @functools.wraps(verb)
    def with_tenant(self: TenantMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return verb(self.memory, self.tenant_key, *args, **kwargs)

    own, _, *rest = inspect.signature(verb).parameters.values()
    vars(with_tenant)["__signature__"] = inspect.signature(verb).replace(parameters=[own, *rest])
    return with_tenant


class TenantMemory:
    """The verbs of :class:`Memory` for one tenant; made by :meth:`Memory.for_tenant`.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
    >>> shop.tenant_key, len(await shop.records())
    ('shop', 1)
    """

    def __init__(self, memory: Memory, tenant_key: str) -> None:
        self.memory = memory
        self.tenant_key = tenant_key

    remember = _bound(Memory.remember)
    remember_many = _bound(Memory.remember_many)
    derive = _bound(Memory.derive)
    supersede = _bound(Memory.supersede)
    relate = _bound(Memory.relate)
    postpone = _bound(Memory.postpone)
    register_artefact = _bound(Memory.register_artefact)
    recall = _bound(Memory.recall)
    get = _bound(Memory.get)
    history = _bound(Memory.history)
    records = _bound(Memory.records)
    record_keys = _bound(Memory.record_keys)
    forget = _bound(Memory.forget)
    forget_record = _bound(Memory.forget_record)
    forget_tenant = _bound(Memory.forget_tenant)
    expire = _bound(Memory.expire)
    hold = _bound(Memory.hold)
    release = _bound(Memory.release)
    readmit = _bound(Memory.readmit)
    decisions = _bound(Memory.decisions)
    purge_outstanding = _bound(Memory.purge_outstanding)
    export = _bound(Memory.export)
    lineage = _bound(Memory.lineage)
    timeline = _bound(Memory.timeline)
    erasure_history = _bound(Memory.erasure_history)
    subject_fingerprint = _bound(Memory.subject_fingerprint)
