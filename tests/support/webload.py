"""Clients of two tenants at once, some of which leave early or lose patience."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import httpx

from webhost import KEYS

__all__ = ["ANN", "Load"]

CLIENTS: Final = 24
ANN, BOB = "customer:ann", "customer:bob"


class Load:
    """Requests of two tenants about the same people, and what was wrong with the answers.

    Every text begins with the tenant it belongs to. ``stored`` are the ids that the service said
    it had stored about Ann, whom nobody forgets.
    """

    def __init__(self, client: httpx.AsyncClient, address: tuple[str, int] | None) -> None:
        self.client = client
        self.address = address
        self.mixed: list[str] = []
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.read = Counter[str]()
        self.left = Counter[str]()
        self.stored: dict[str, list[str]] = {tenant: [] for tenant in KEYS}

    async def run(self, requests: int) -> None:
        """Make so many requests, from as many clients as there are at once."""
        numbers = iter(range(requests))
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._some(numbers))

    async def _some(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self.one(random.Random(number))  # noqa: S311 - reproducible, not secret

    async def one(self, chance: random.Random) -> None:
        """Make one request of one tenant, at random."""
        tenant = chance.choice(list(KEYS))
        path, body = _request(tenant, chance)
        kind = chance.random()
        if kind < 0.1 and self.address is not None:
            await self._leave(tenant, path, body, chance)
            return
        headers = {"Authorization": f"Bearer {KEYS[tenant]}"}
        if kind > 0.9:
            headers["X-Patience"] = f"{chance.uniform(0, 0.03):.4f}"
        try:
            answer = await self.client.post(path, json=body, headers=headers)
        except httpx.TransportError:
            if "X-Patience" not in headers:
                raise
            self.left["cancelled in a stream"] += 1
            return
        self.statuses[path, answer.status_code] += 1
        if answer.status_code < 300:
            self._check(tenant, path, body, answer)

    def _check(self, tenant: str, path: str, body: dict[str, Any], answer: httpx.Response) -> None:
        for item in _items(path, answer):
            self.read[path] += 1
            place, text = item.get("tenant_key", tenant), item.get("text", tenant)
            if place != tenant or not text.startswith(tenant):
                self.mixed.append(f"{path}: {tenant} was answered with {place}, {text}")
        if path == "/remember" and body["subject_keys"] == [ANN]:
            self.stored[tenant].append(body["record_id"])

    async def _leave(
        self, tenant: str, path: str, body: dict[str, Any], chance: random.Random
    ) -> None:
        """Ask by hand and leave: in the middle of the request, after it, or in the answer."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {KEYS[tenant]}\r\nContent-Length: {len(content)}\r\n\r\n"
        ).encode()
        assert self.address is not None
        reader, writer = await asyncio.open_connection(*self.address)
        how = chance.choice(["in the head", "in the body", "at once", "soon", "in the answer"])
        whole = head + content
        ends = {"in the head": len(head) // 2, "in the body": len(head) + 1}
        writer.write(whole[: ends.get(how, len(whole))])
        await writer.drain()
        if how == "soon":
            await asyncio.sleep(chance.uniform(0, 0.02))
        if how == "in the answer":
            await reader.read(200)
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.left[how] += 1


def _request(tenant: str, chance: random.Random) -> tuple[str, dict[str, Any]]:
    person = chance.choice([ANN, BOB])
    match chance.randrange(10):
        case 0 | 1:
            text = f"{tenant} likes tea, cup {chance.randrange(1_000)}"
            own = {"text": text, "subject_keys": [person], "record_id": str(uuid4())}
            return "/remember", own
        case 2 | 3:
            return "/recall", {"text": "likes tea", "subject_keys": [person]}
        case 4 | 5:
            return "/recall", {"limit": 20}
        case 6 | 7:
            return "/export", {"subject_key": person}
        case 8:
            return "/forget", {"subject_key": BOB, "dry_run": chance.random() < 0.5}
        case _:
            return "/erasures", {"limit": 5}


def _items(path: str, answer: httpx.Response) -> list[dict[str, Any]]:
    if path == "/export":
        found = [json.loads(line) for line in answer.text.splitlines()]
        return [item for item in found if item["type"] == "record"]
    content = answer.json()
    match path:
        case "/recall":
            return [hit["record"] for hit in content["hits"]]
        case "/remember":
            return [content["record"]]
        case "/erasures":
            return list(content)
        case _:
            return [content]
