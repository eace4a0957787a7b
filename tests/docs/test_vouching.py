"""The auditor's file of the page on verifying, as an auditor runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memory
from memory import Anchor, Memory, PostgresStore
from pages import ROOT, Page
from servers import Database

Vouch = Callable[..., tuple[int, str]]
PAGE = Page(ROOT / "docs" / "verify.md")


@pytest.fixture
async def anchors(database: Database, tmp_path: Path) -> dict[str, Anchor]:
    """Two tenants, three tombstones each in one stream; the anchors are of the second."""
    anchors = {}
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for tenant in ("shop", "bank"):
            for _ in range(3):
                await service.remember(tenant, text="Prefers mornings", subject_keys="7f3a")
                await service.forget(tenant, subject_key="7f3a")
            _, second, _ = await service.erasure_history(tenant)
            anchors[tenant] = Anchor(seq=second.seq, digest=second.digest)
    lines = [line async for line in memory.export_tombstones(database.owner_url)]
    (tmp_path / "tombstones.jsonl").write_text("\n".join(lines) + "\n")
    return anchors


@pytest.fixture(params=[(), ("-O",)], ids=["plain", "-O"])
def vouch(request: pytest.FixtureRequest, tmp_path: Path) -> Vouch:
    """Run the file with nothing of ours to import; return its code and what it said."""
    [block] = [block for block in PAGE.blocks("python") if block.file == "vouch.py"]
    (tmp_path / "vouch.py").write_text(block.code)

    def run(tenant: str, anchor: Anchor, *person: str) -> tuple[int, str]:
        given = ["tombstones.jsonl", tenant, str(anchor.seq), anchor.digest, *person]
        done = subprocess.run(
            [sys.executable, "-I", "-S", *request.param, "vouch.py", *given],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def damage(folder: Path, change: Callable[[list[Any]], None]) -> None:
    """Change the shop's tombstones in the stream."""
    path = folder / "tombstones.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    stones = [one for one in lines if one["type"] == "tombstone" and one["tenant_key"] == "shop"]
    others = [one for one in lines if one not in stones]
    change(stones)
    path.write_text("".join(json.dumps(one) + "\n" for one in [*stones, *others]))


def vouches(found: tuple[int, str], count: int) -> bool:
    """Whether so many tombstones are listed, and the anchor is said to vouch for them."""
    code, said = found
    *listed, last = said.splitlines()
    return (code, len(listed)) == (0, count) and last.startswith(f"{count} of the 2 tombstones")


async def test_one_person_is_asked_for_by_the_whole_hash(
    anchors: dict[str, Anchor], vouch: Vouch, database: Database
) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        person = service.subject_fingerprint("shop", subject_key="7f3a")
    assert vouches(vouch("shop", anchors["shop"], person), 2)
    for nobody in (person[:16], "0" * 64):
        code, said = vouch("shop", anchors["shop"], nobody)
        assert (code, said[:4]) == (1, "0 of")


async def test_how_to_call_it_is_said_where_it_is_called_otherwise(
    anchors: dict[str, Anchor], vouch: Vouch
) -> None:
    assert vouch("shop", anchors["shop"], "0" * 64, "more") == (1, USAGE)
    assert vouch("shop", Anchor(seq="second", digest=""), "") == (1, USAGE)  # type: ignore[arg-type]


USAGE = "python3 vouch.py FILE TENANT SEQ DIGEST [HASH]\n"


async def test_each_tenant_is_vouched_for_by_its_own_anchor_alone(
    anchors: dict[str, Anchor], vouch: Vouch
) -> None:
    for tenant, anchor in anchors.items():
        assert vouches(vouch(tenant, anchor), 2)
    wrong = (1, "not the chain of this anchor\n")
    assert vouch("shop", anchors["bank"]) == wrong
    assert vouch("nobody", anchors["shop"]) == wrong
    assert vouch("shop", Anchor(seq=3, digest=anchors["shop"].digest)) == wrong


DAMAGE: list[tuple[str, Callable[[list[Any]], None]]] = [
    ("edited", lambda stones: stones[0].update(memories=2)),
    ("edited", lambda stones: stones[0].update(erased_at="2026-01-01T00:00:00+00:00")),
    ("moved", lambda stones: stones.pop(1)),
    # Who is left out at the beginning is of no tombstone that the anchor would miss.
    ("moved", lambda stones: stones[0].update(tenant_key="bank2")),
    ("moved", list.reverse),
]


@pytest.mark.parametrize(("said", "change"), DAMAGE)
async def test_what_was_done_to_a_stream_is_said_and_the_neighbour_stands(
    anchors: dict[str, Anchor],
    vouch: Vouch,
    tmp_path: Path,
    said: str,
    change: Callable[[list[Any]], None],
) -> None:
    damage(tmp_path, change)
    assert vouch("shop", anchors["shop"]) == (1, f"{said}\n")
    assert vouches(vouch("bank", anchors["bank"]), 2)
