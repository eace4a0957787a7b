"""The default event sink, and publishing that cannot undo an erasure."""

from __future__ import annotations

import logging
from datetime import timedelta

from memory.calls import CallFailedError, called
from memory.ports import ErasureEvent, EventSink
from memory.types import Receipt

__all__ = ["LoggingSink", "publish"]

_logger = logging.getLogger("memory.erasure")


class LoggingSink:
    """Writes each event to the logger ``memory.erasure`` at INFO: codes and counts only."""

    async def publish(self, event: ErasureEvent) -> None:
        """See :meth:`memory.EventSink.publish`."""
        _logger.info(
            "erasure %s: reason=%s scope=%s memories=%d derived=%d provenance_edges=%d "
            "artefacts=%d complete=%s",
            event.erasure_id,
            event.reason,
            event.scope,
            event.memories,
            event.derived,
            event.provenance_edges,
            event.artefacts,
            event.complete,
        )


async def publish(sink: EventSink, receipt: Receipt, limit: timedelta) -> None:
    """Publish the event of a finished erasure; a sink that fails is logged by its class only.

    The erasure is committed: whatever the sink raises, or however long it takes, changes nothing.
    """
    anchor = receipt.anchor
    event = ErasureEvent(
        erasure_id=receipt.erasure_id,
        reason=receipt.reason,
        scope=receipt.scope,
        memories=receipt.counts.memories,
        derived=receipt.counts.derived,
        provenance_edges=receipt.counts.provenance_edges,
        artefacts=receipt.counts.artefacts,
        complete=receipt.complete,
        outstanding=receipt.outstanding,
        seq=None if anchor is None else anchor.seq,
        digest=None if anchor is None else anchor.digest,
        completed_at=receipt.completed_at,
    )
    try:
        await called(lambda: sink.publish(event), limit)
    except CallFailedError as failure:
        _logger.error("the event sink failed: %s", failure.kind)  # noqa: TRY400 - a traceback may quote
