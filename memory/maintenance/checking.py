"""Checking what is stored: the rows of every tenant against each other and against the evidence."""

from __future__ import annotations

from collections.abc import Mapping

from memory import validation
from memory.maintenance.checks.chain import check_chain
from memory.maintenance.checks.erased import check_erased
from memory.maintenance.checks.faults import CheckReport, Collector
from memory.maintenance.checks.hashes import check_hashes
from memory.maintenance.checks.rows import check_rows
from memory.maintenance.due import Lines, Stream, read
from memory.maintenance.walking import Progress, Source, opened, silent, tenants
from memory.types import Anchor

__all__ = ["check"]


async def check(
    engine_or_url: Source,
    *,
    anchors: Mapping[str, Anchor] | None = None,
    tombstones: Lines | None = None,
    subject_pepper: str | bytes | None = None,
    progress: Progress = silent,
) -> CheckReport:
    """Look at every row of every tenant once, as the owner of the schema; nothing is written.

    ``anchors`` are chain positions kept outside, by tenant: only they find a chain whose newest
    tombstones were removed, or that was computed anew. ``tombstones`` is an exported stream (see
    :func:`export_tombstones`): people it says were erased, and the database holds again, are
    ``resurrected`` until :func:`replay` has been called, and ``narrow_not_repeated`` where it says
    an erasure that did not tell which records it took. With the ``subject_pepper`` everybody's hash
    is computed anew. ``progress`` is called with a step and a count.

    Every page of 5,000 rows is judged in a snapshot of its own, so that writers are not in the way
    and what they do meanwhile is not mistaken for a fault. Memory grows with the people erased.
    Rows of a tenant that ``memory.tenants`` does not list are not seen.

    Raises ``InvalidInputError`` for a stream that does not hold together and for an anchor that is
    none (a receipt's is, where nothing was erased), ``InstallError`` for a role that is not the
    owner's.

    >>> import memory
    >>> report = await memory.check(owner_url)
    >>> report.ok, report.faults
    (True, ())
    """
    pepper = validation.pepper(subject_pepper)
    found = Collector()
    given = validation.anchors(anchors)
    count = 0
    async with opened(engine_or_url) as access:
        stream = Stream()
        if tombstones is not None:
            stream = await read(access, tombstones, None)
        async for tenant_key in tenants(access):
            progress("tenants", count)
            own = await check_chain(access, tenant_key, given.pop(tenant_key, None), found)
            await check_erased(access, tenant_key, own, stream, found)
            if pepper:
                await check_hashes(access, tenant_key, pepper, found)
            await check_rows(access, tenant_key, found, progress)
            count += 1
    for tenant_key, anchor in given.items():
        found.add("chain_anchor", tenant_key, 1, anchor.seq)
    return CheckReport(tenants=count, rows=found.rows, faults=found.faults())
