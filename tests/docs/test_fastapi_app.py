"""The web service of the examples: tenants by key, the cycle of an erasure, the process."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import shlex
import signal
import subprocess
import sys
from itertools import pairwise
from typing import Any

import asyncpg
import httpx
import pytest

from memory import Memory, PostgresStore
from processes import eventually, free_port
from rawsql import Connection
from samples import EXAMPLES, load
from servers import Database
from stores import image, mentions, rows_of
from webhost import KEYS, Host, hosted, no_session_is_left, sessions

NEEDLE = "Zelda-4711"


async def test_a_tenant_reads_lists_exports_and_erases_its_own_only(
    host: Host, superuser: Connection
) -> None:
    for tenant in ("one", "two"):
        await host.told(tenant, f"Ann of {tenant} moved", "ann")
    kept = await image(superuser, "two")
    found = (await host.post("one", "/recall", text="Ann moved")).json()
    assert [hit["record"]["text"] for hit in found["hits"]] == ["Ann of one moved"]
    exported = (await host.post("one", "/export", subject_key="ann")).text
    assert ("Ann of one" in exported, "Ann of two" in exported) == (True, False)
    receipt = (await host.post("one", "/forget", subject_key="ann")).json()
    assert (receipt["counts"]["memories"], receipt["complete"]) == (1, True)
    assert len((await host.post("one", "/erasures")).json()) == 1
    assert (await host.post("two", "/erasures")).json() == []
    assert await image(superuser, "two") == kept
    assert await mentions(superuser, "Ann of one") == {}


WRONG = {
    "no header": {},
    "another key": {"Authorization": "Bearer key-of-three"},
    "no key": {"Authorization": "Bearer"},
    "another scheme": {"Authorization": f"Basic {KEYS['one']}"},
    "the digest of a key": {"Authorization": f"Bearer {load('fastapi_app').digest(KEYS['one'])}"},
    "the name of a tenant": {"Authorization": "Bearer one"},
    "no ASCII": {"Authorization": b"Bearer \xff\xfe"},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
async def test_without_a_valid_key_nothing_is_read_or_written(
    door: Host, place: Database, headers: dict[str, Any]
) -> None:
    await door.told("one", NEEDLE, "ann")
    superuser = await asyncpg.connect(place.superuser_url)
    before = await image(superuser, "one")
    for path, body in {
        "/remember": {"text": "x", "subject_keys": ["ann"]},
        "/recall": {"text": NEEDLE},
        "/export": {"subject_key": "ann"},
        "/forget": {"subject_key": "ann"},
        "/erasures": {"nonsense": 1},  # whoever has no key is not told what a body must be
    }.items():
        answer = await door.client.post(path, json=body, headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        said = {"error": "HTTPException", "detail": "a valid API key is needed"}
        assert answer.json() == said
        assert NEEDLE not in answer.text
    assert await image(superuser, "one") == before
    assert await rows_of(superuser, "") == await rows_of(superuser, "one")
    await superuser.close()


async def test_a_path_that_is_not_there_is_answered_in_the_same_form(door: Host) -> None:
    for path, status, detail in (
        ("/planted", 404, "Not Found"),
        ("/live", 405, "Method Not Allowed"),
    ):
        answer = await door.client.post(path)
        said = {"error": "HTTPException", "detail": detail}
        assert (answer.status_code, answer.json()) == (status, said)


async def test_every_key_is_compared_whatever_was_given(
    door: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(known: str, given: str) -> bool:
        compared.append((len(known), len(given)))
        return known == given

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for key in (KEYS["one"], KEYS["two"], "neither"):
        compared.clear()
        await door.client.post("/erasures", json={}, headers={"Authorization": f"Bearer {key}"})
        assert compared == [(64, 64)] * len(KEYS)


async def test_a_tenant_in_the_body_is_refused(host: Host, superuser: Connection) -> None:
    answer = await host.post("one", "/remember", text="x", subject_keys=["ann"], tenant_key="two")
    assert answer.status_code == 422
    assert await rows_of(superuser, "") == {}
    await host.told("one", "x", "ann")
    assert set(await rows_of(superuser, "two")) == set()


async def test_a_dry_run_changes_nothing_and_what_it_showed_is_what_goes(
    host: Host, superuser: Connection
) -> None:
    await host.told("one", "Zoe is the neighbour", "zoe")
    neighbour = await host.memory.records("one", subject_keys="zoe")
    await host.told("one", f"Ann said {NEEDLE}", "ann", metadata={"note": NEEDLE})
    before = await image(superuser, "one")
    plan = (await host.post("one", "/forget", subject_key="ann", dry_run=True)).json()
    assert (plan["counts"]["memories"], plan["dry_run"], plan["complete"]) == (1, True, False)
    assert await image(superuser, "one") == before
    await host.told("one", f"{NEEDLE} again", "ann")
    late = await host.post("one", "/forget", subject_key="ann", expect=plan["closure"])
    assert late.status_code == 409
    assert (await mentions(superuser, NEEDLE))["records"] == 2
    plan = (await host.post("one", "/forget", subject_key="ann", dry_run=True)).json()
    receipt = await host.post("one", "/forget", subject_key="ann", expect=plan["closure"])
    assert receipt.status_code == 200
    assert receipt.json()["counts"]["memories"] == 2
    assert await mentions(superuser, NEEDLE) == {}
    assert await host.memory.records("one") == neighbour
    (stone,) = (await host.post("one", "/erasures", subject_key="ann")).json()
    assert stone["erasure_id"] == receipt.json()["erasure_id"]
    assert stone["subject_hash"] == host.memory.subject_fingerprint("one", subject_key="ann")
    assert (await host.post("one", "/erasures", subject_key="zoe")).json() == []


async def test_a_retry_with_an_id_stores_nothing_twice_and_other_content_is_a_conflict(
    host: Host, superuser: Connection
) -> None:
    own = {"subject_keys": ["ann"], "record_id": "0190a9c0-0000-7000-8000-000000000000"}
    answers = [await host.post("one", "/remember", text="tea", **own) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert (await host.post("one", "/remember", text="coffee", **own)).status_code == 409
    assert [row["text"] for row in await superuser.fetch("select text from memory.records")] == [
        "tea"
    ]


async def test_the_export_is_what_the_library_exports_line_by_line(host: Host) -> None:
    for number in range(3):
        await host.told("one", f"Ann, {number}", "ann")
    await host.told("one", "Zoe", "zoe")
    await host.post("one", "/forget", subject_key="bob")
    async with contextlib.aclosing(host.memory.export("one", subject_key="ann")) as entries:
        expected = [entry.to_dict() async for entry in entries]
    answer = await host.post("one", "/export", subject_key="ann")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in answer.text.splitlines()] == expected
    assert len(expected) == 3
    nobody = await host.post("one", "/export", subject_key="nobody")
    assert (nobody.status_code, nobody.text) == (200, "")


async def test_it_connects_with_the_first_request_and_closes_what_it_opened(
    database: Database, superuser: Connection
) -> None:
    store = PostgresStore(database.app_url)
    async with hosted(Memory(store, subject_pepper="pepper")) as host:
        assert await sessions(superuser, database) == []
        await asyncio.gather(*(host.told("one", "tea", "ann") for _ in range(3)))
        assert await sessions(superuser, database) != []
    await no_session_is_left(superuser, database)


def test_the_environment_makes_the_service(
    monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    example = load("fastapi_app")
    monkeypatch.setenv("MEMORY_DATABASE_URL", database.app_url)
    monkeypatch.setenv("MEMORY_SUBJECT_PEPPER", "pepper")
    monkeypatch.setenv("MEMORY_TENANTS", json.dumps({example.digest("a key"): "shop"}))
    app = example.from_environment()
    assert example.tenant_of("a key", app.state.tenants) == "shop"
    assert example.tenant_of("another", app.state.tenants) is None
    assert set(app.openapi()["paths"]) == {
        *("/remember", "/recall", "/forget", "/export", "/erasures", "/live", "/ready")
    }


def test_a_newcomer_tries_it_with_the_printed_command() -> None:
    environment = {**os.environ, "PORT": str(free_port())}
    command = [sys.executable, "-W", "error", str(EXAMPLES / "fastapi_app.py")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        printed = process.stdout.readline()
        assert printed.startswith("curl "), process.stderr.read()
        words = shlex.split(printed)
        options = list(pairwise(words))
        headers = dict(word.split(": ") for option, word in options if option == "-H")
        [body] = [word for option, word in options if option == "-d"]

        def ask() -> None:
            answer = httpx.post(words[-1], headers=headers, content=body)
            assert (answer.status_code, "Dana moved" in answer.text) == (201, True)

        eventually(ask, refused=httpx.ConnectError, log=EXAMPLES / "fastapi_app.py")
        process.send_signal(signal.SIGINT)
        _, logged = process.communicate(timeout=60)
    assert process.returncode == 0, logged
    assert "Traceback" not in logged
    assert "Dana" not in logged
