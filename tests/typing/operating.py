"""The documented use of what operators and verifiers call. Checked by mypy, never run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, assert_type
from uuid import UUID

import memory
from memory import (
    Anchor,
    Check,
    CheckReport,
    DerivedIndex,
    Embedder,
    ErasureEvent,
    EventSink,
    Fault,
    Finding,
    HashingEmbedder,
    Redactor,
    Replayed,
    Tombstone,
    fingerprint,
    maintenance,
    redaction,
    tombstones,
)
from memory.integrations import minilm
from memory.maintenance import Pending, Residue, Scrubbed, ScrubStep, Trace
from memory.redaction import NoRedactor, PatternRedactor, Redacted, checks
from memory.tombstones import Verified


async def installed(owner_url: str) -> None:
    assert_type(memory.__version__, str)
    assert_type(memory.migrate.location(), Path)
    assert_type(await memory.verify_install(owner_url), tuple[Check, ...])
    assert_type(await memory.fold_counts(owner_url), int)


async def own_server(path: Path) -> memory.embedded.Server:
    async with memory.embedded.serve(path, postgres_version=16) as server:
        assert_type(server.url, str)
        return server


def reported(report: CheckReport, fault: Fault, replayed: Replayed) -> None:
    assert_type((report.ok, replayed.complete), tuple[bool, bool])
    assert_type((replayed.held, replayed.to_review), tuple[int, int])
    assert_type(fault.severity, Literal["error", "warning"])
    assert_type((fault.what, fault.remedy), tuple[str, str])


async def scrubbed(owner_url: str, directory: Path) -> None:
    def told(step: ScrubStep) -> None:
        assert_type(step.seconds, float)

    report = await maintenance.scrub(owner_url, progress=told)
    assert_type(report, Scrubbed)
    assert_type(report.complete, bool)
    assert_type(report.codes, frozenset[str])
    assert_type(report.pending, tuple[Pending, ...])
    left = maintenance.find_residue(directory, ["a text", [1.0, 2.0]], fragment=16)
    assert_type(left, Residue)
    assert_type(left.traces, tuple[Trace, ...])
    assert_type((left.found, left.share), tuple[frozenset[int], float])


def evidence(stone: Tombstone, ids: list[UUID], lines: list[str]) -> None:
    assert_type(fingerprint.TOMBSTONE_FORMAT, int)
    assert_type(fingerprint.tombstone_digest(stone), str)
    assert_type(fingerprint.closure_digest(ids), str)
    assert_type(fingerprint.subject_hash("acme", "p", b"pepper"), str)
    given = fingerprint.pepper_check(b"pepper")
    assert_type(fingerprint.pepper_problem(given, first_without=True), str)
    assert_type(tombstones.verify(lines), Verified)
    for read in tombstones.read(lines):
        assert_type(read, Tombstone)
    anchor = Anchor(seq=stone.seq, digest=stone.digest)
    written = [tombstones.header(), tombstones.line(stone), tombstones.head("acme", anchor)]
    assert_type([*written, tombstones.footer(1)], list[str])


async def redacted() -> None:
    redactor = PatternRedactor([("order", "ORD-[0-9]{6}")], ip_addresses=True)
    assert_type(redactor.redact("x"), tuple[str, tuple[Finding, ...]])
    assert_type(redactor.scan("x"), tuple[Finding, ...])
    assert_type(redaction.scan("x"), tuple[Finding, ...])
    nothing: NoRedactor = redaction.no_redactor
    assert_type(nothing.redact("x")[0], str)
    assert_type(redaction.redact_fields(redaction.strict_redactor, "x", {"k": 1}), Redacted)
    many = await redaction.redact_many(redaction.default_redactor, [("x", {})])
    assert_type(many, list[Redacted])
    valid = [check("x") for check in (checks.aadhaar, checks.gstin, checks.iban, checks.ifsc)]
    valid += [check("x") for check in (checks.luhn, checks.mod97, checks.pan, checks.verhoeff)]
    assert_type([*valid, checks.virtual_id("x")], list[bool])


async def ports_are_called(
    embedder: Embedder, index: DerivedIndex, sink: EventSink, redactor: Redactor, one: ErasureEvent
) -> None:
    assert_type(await embedder.embed(["x"]), Sequence[Sequence[float]])
    assert_type(await index.purge(["id"]), int)
    assert_type(redactor.redact("x"), tuple[str, Sequence[Finding]])
    await sink.publish(one)
    assert_type(await HashingEmbedder(8).embed(["x"]), list[list[float]])
    assert_type(await minilm.MiniLMEmbedder().embed(["x"]), list[list[float]])
    assert_type(minilm.MAX_TOKENS, Literal[256])
