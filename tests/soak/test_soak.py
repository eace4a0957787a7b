"""The soak's small form, and that its judges can find a fault."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from judging import unforgotten, unwritten
from ledger import Account, Ledger, Text, account, entries, marker
from memory import Memory
from memory.stores.postgres import PostgresStore
from processes import require
from rawsql import Connection
from servers import Database

SOAK = Path(__file__).with_name("soak.py")


def test_every_promise_holds_after_load_and_mishaps(tmp_path: Path) -> None:
    require("pgbouncer", "pgbouncer")
    file = tmp_path / "soak.json"
    command = [sys.executable, str(SOAK), "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    report = json.loads(file.read_text()) if file.exists() else {}
    broken = {name: it for name, it in report.get("invariants", {}).items() if it}
    assert (done.returncode, broken) == (0, {}), done.stdout + done.stderr
    assert len(report["invariants"]) == 13
    assert report["figures"]["erased"] > 0
    assert {it["what"] for it in report["mishaps"]} >= {"backends terminated", "client killed"}
    if os.geteuid() == 0:
        assert report["not_simulated"] == []


async def test_the_judges_find_what_is_left_of_somebody_and_what_is_lost(
    database: Database, superuser: Connection
) -> None:
    chance = random.Random(1)  # noqa: S311 - reproducible, not secret
    ann, zoe, of_ann, of_zoe = (marker(chance) for _ in range(4))
    found = Account(tenants={ann: "acme", zoe: "acme"})
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as store:
        for person, text in ((ann, of_ann), (zoe, of_zoe)):
            told = await store.remember(
                "acme", text=f"note {text}", subject_keys=f"customer:{person}"
            )
            record = str(told.record.record_id)
            found.texts[text] = Text(frozenset([person]), "acme", record)
        assert await unforgotten(superuser, found) == []
        assert await unwritten(superuser, found) == []
        found.erased.add(ann)
        assert {of_ann, ann} <= {
            word for line in await unforgotten(superuser, found) for word in line.split()
        }
        await store.forget("acme", subject_key=f"customer:{ann}")
        assert await unforgotten(superuser, found) == []
        assert await unwritten(superuser, found) == []
        await store.forget("acme", subject_key=f"customer:{zoe}")
        assert await unwritten(superuser, found) == [f"{of_zoe} is lost"]


def test_a_ledger_says_what_was_told_and_survives_a_cut_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "one")
    ledger.note("born", person="p", tenant="acme")
    ledger.note("telling", texts=["a", "b"], people=["p"], tenant="acme", expires=False)
    ledger.note("told", text="a", record="1")
    ledger.note("erasing", person="p")
    with (tmp_path / "one.ledger").open("a") as file:
        file.write('{"what":"era')
    found = account(entries(tmp_path))
    assert found.standing() == {}
    assert (found.erasing, found.dead()) == ({"p"}, set())
    found.erased.add("p")
    assert found.dead() == {"p", "a", "b"}
