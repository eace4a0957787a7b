"""Each error has its status, and neither an answer nor a log quotes what was sent."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import memory
from memory import Memory, MemoryServiceError, PostgresStore
from rawsql import Connection
from samples import load
from servers import Database
from stores import mentions
from webhost import KEYS, Host, hosted

NEEDLE = "Zelda-4711"


def errors() -> list[type[MemoryServiceError]]:
    """Every public error of the library."""
    found = [getattr(memory, name) for name in memory.__all__]
    return [
        item
        for item in found
        if isinstance(item, type)
        and issubclass(item, MemoryServiceError)
        and not issubclass(item, memory.LegalHoldError | memory.PartialErasureError)
    ]


STATUSES = {
    "ConflictError": 409,
    "InstallError": 500,
    "InvalidInputError": 422,
    "MemoryServiceError": 500,
    "ProvenanceRequiredError": 422,
    "RetryableError": 503,
    "StoreUnavailableError": 503,
    "SubjectBlockedError": 403,
    "TenantRequiredError": 422,
    "UnknownRecordError": 404,
    "UnknownSourceError": 404,
}


@pytest.mark.parametrize("error", errors(), ids=lambda error: error.__name__)
async def test_each_error_has_its_status(
    monkeypatch: pytest.MonkeyPatch, error: type[MemoryServiceError]
) -> None:
    raised = error(*(["field", "rule"] if issubclass(error, memory.InvalidInputError) else ["why"]))

    async def recall(*arguments: Any, **options: Any) -> None:
        raise raised

    monkeypatch.setattr(memory.TenantMemory, "recall", recall)
    async with hosted(Memory(subject_pepper="pepper")) as host:
        answer = await host.post("one", "/recall", text="tea")
    status = STATUSES[error.__name__]
    detail = {} if status >= 500 else {"detail": str(raised)}
    assert (answer.status_code, answer.json()) == (status, {"error": error.__name__, **detail})
    assert ("retry-after" in answer.headers) is (status == 503)


async def test_a_held_person_is_kept_and_the_receipt_says_so(
    host: Host, superuser: Connection, database: Database
) -> None:
    await host.told("one", NEEDLE, "ann")
    await host.memory.hold("one", subject_key="ann")
    answer = await host.post("one", "/forget", subject_key="ann")
    assert answer.status_code == 423
    receipt = answer.json()["receipt"]
    assert (receipt["held"], receipt["deferred"], receipt["complete"]) == (1, True, False)
    assert (await mentions(superuser, NEEDLE))["records"] == 1
    async with Memory(PostgresStore(database.operator_url), subject_pepper="pepper") as operator:
        await operator.release("one", subject_key="ann")
    assert await mentions(superuser, NEEDLE) == {}


async def test_an_index_that_owes_a_purge_is_named_and_the_database_is_clean(
    host: Host, superuser: Connection
) -> None:
    record = await host.told("one", NEEDLE, "ann")
    await host.memory.register_artefact(
        "one", adapter="vectors", artefact_id="a1", sources=record["record_id"]
    )
    answer = await host.post("one", "/forget", subject_key="ann")
    assert answer.status_code == 202
    assert answer.json()["receipt"]["outstanding"] == ["vectors"]
    assert await mentions(superuser, NEEDLE) == {}


async def test_somebody_who_was_barred_stays_out_and_others_come_in(host: Host) -> None:
    await host.post("one", "/forget", subject_key="ann", block_future=True)
    answer = await host.post("one", "/remember", text=NEEDLE, subject_keys=["ann"])
    assert (answer.status_code, answer.json()["error"]) == (403, "SubjectBlockedError")
    await host.told("one", "Zoe", "zoe")


async def test_another_pepper_is_an_operators_affair(
    host: Host, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await host.told("one", "tea", "ann")
    store = PostgresStore(database.app_url)
    async with hosted(Memory(store, subject_pepper="another")) as other:
        answer = await other.post("one", "/forget", subject_key="ann")
        assert (answer.status_code, answer.json()) == (500, {"error": "InstallError"})
        ready = await other.client.get("/ready")
        assert (ready.status_code, ready.json()) == (503, {"ready": False})
        assert (await other.client.get("/live")).status_code == 200
    assert "the subject pepper is not the one" in caplog.text
    assert (await host.client.get("/ready")).json() == {"ready": True}


async def test_a_database_that_is_away_is_a_503_and_no_reason_to_restart() -> None:
    store = PostgresStore(f"postgresql://app:{NEEDLE}@127.0.0.1:1/db")
    async with hosted(Memory(store, subject_pepper="pepper")) as host:
        for path in ("/recall", "/erasures", "/export"):
            body = {"subject_key": "ann"} if path == "/export" else {}
            answer = await host.post("one", path, **body)
            assert (answer.status_code, answer.json()) == (503, {"error": "StoreUnavailableError"})
        assert (await host.client.get("/ready")).status_code == 503
        assert (await host.client.get("/live")).status_code == 200


async def test_a_database_that_does_not_answer_makes_it_unready_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load("fastapi_app"), "READY_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://app@127.0.0.1:{silent.getsockname()[1]}/db"
        async with hosted(Memory(PostgresStore(url), subject_pepper="pepper")) as host:
            assert (await host.client.get("/ready")).json() == {"ready": False}


BAD: dict[str, tuple[bytes, int]] = {
    "no JSON": (b'{"text": "%s' % NEEDLE.encode(), 422),
    "no object": (b'"%s"' % NEEDLE.encode(), 422),
    "nested too deep": (b'{"text": %s"%s"' % (b"[" * 100_000, NEEDLE.encode()), 400),
    "no UTF-8": (b'{"text": "%s\xff"}' % NEEDLE.encode(), 400),
    "too large": (b'{"text": "%s"}' % (NEEDLE.encode() * 30_000), 413),
    "a text too long": (json.dumps({"text": NEEDLE * 2_000}).encode(), 422),
    "a text of another type": (json.dumps({"text": {NEEDLE: NEEDLE}}).encode(), 422),
    "an unknown field": (json.dumps({NEEDLE: NEEDLE}).encode(), 422),
    "a person too long": (json.dumps({"subject_keys": [NEEDLE * 99]}).encode(), 422),
    "a NUL": (json.dumps({"text": f"{NEEDLE}\0"}).encode(), 422),
    "a surrogate": (b'{"text": "%s\\ud800"}' % NEEDLE.encode(), 422),
    "a number that is none": (b'{"limit": "%s"}' % NEEDLE.encode(), 422),
}


@pytest.mark.parametrize(("content", "status"), BAD.values(), ids=BAD)
async def test_a_bad_body_is_quoted_neither_in_the_answer_nor_in_a_log(
    door: Host, everything: pytest.LogCaptureFixture, content: bytes, status: int
) -> None:
    headers = {"Authorization": f"Bearer {KEYS['one']}", "Content-Type": "application/json"}
    answer = await door.client.post("/recall", content=content, headers=headers)
    assert answer.status_code == status
    assert NEEDLE not in answer.text
    assert NEEDLE not in everything.text
    good = await door.client.post("/recall", content=b'{"text": "tea"}', headers=headers)
    assert good.status_code == 200


async def test_a_body_without_a_length_is_cut_off_too(host: Host) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 100_000
        raise AssertionError("read to the end")

    headers = {"Authorization": f"Bearer {KEYS['one']}"}
    answer = await host.client.post("/recall", content=endless(), headers=headers)
    assert answer.status_code == 413


class Quoting:
    """An embedder whose error quotes what it was given."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise ValueError(f"cannot embed {texts}")


async def test_what_nobody_expected_is_logged_by_its_class(
    database: Database, everything: pytest.LogCaptureFixture
) -> None:
    store = PostgresStore(database.app_url)
    async with hosted(Memory(store, embedder=Quoting(), subject_pepper="pepper")) as host:
        answer = await host.post("one", "/recall", text=NEEDLE)
    assert (answer.status_code, NEEDLE in answer.text) == (500, False)
    assert "unexpected ValueError" in everything.text
    assert NEEDLE not in everything.text


async def test_no_log_keeps_a_word_a_key_or_a_tenant(
    everything: pytest.LogCaptureFixture, host: Host
) -> None:
    for record in ("first", "second"):
        await host.told("one", f"{NEEDLE} {record}", NEEDLE, metadata={NEEDLE: NEEDLE})
    await host.post("one", "/recall", text=NEEDLE, subject_keys=[NEEDLE])
    await host.post("one", "/export", subject_key=NEEDLE)
    await host.post("one", "/forget", subject_key=NEEDLE, dry_run=True)
    await host.post("one", "/forget", subject_key=NEEDLE)
    assert "memories=2" in everything.text
    for value in (NEEDLE, NEEDLE.lower(), *KEYS.values()):
        assert value not in everything.text
