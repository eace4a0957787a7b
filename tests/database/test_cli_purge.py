"""``memory purge``, without an index and with one that the host plugs in."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import psycopg
import pytest

from memory import Memory, PartialErasureError
from memory.stores.postgres import PostgresStore
from servers import Database
from terminals import MAIN, environment, on_terminal, piped, terminal

# What docs/cli.md tells a host to write; this index keeps its vectors in a directory.
HOST = """
import os
from pathlib import Path

from memory.cli import main


class Folder:
    name = "vectors"

    async def purge(self, artefact_ids):
        if os.environ.get("DOWN"):
            raise ConnectionError("planted-message")
        for name in artefact_ids:
            (Path(os.environ["FOLDER"]) / name).unlink(missing_ok=True)
        return len(artefact_ids)


main(indexes=[Folder()])
"""


@pytest.fixture
async def owing(database: Database, tmp_path: Path) -> Path:
    """Two tenants owe the index one artefact each; its folder holds a neighbour's, too."""
    folder = tmp_path / "vectors"
    folder.mkdir()
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for tenant in ("shop", "bank"):
            one = await service.remember(tenant, text="text", subject_keys="planted-person")
            name = f"planted-{tenant}"
            await service.register_artefact(
                tenant, adapter="vectors", artefact_id=name, sources=one
            )
            (folder / name).touch()
            with pytest.raises(PartialErasureError):
                await service.forget(tenant, subject_key="planted-person")
    (folder / "neighbour").touch()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def debts(database: Database) -> int:
    with psycopg.connect(database.superuser_url) as superuser:
        [(count,)] = superuser.execute("select count(*) from memory.purges").fetchall()
    return int(count)


async def test_without_an_index_it_shows_what_is_owed_and_who_can_settle_it(
    database: Database, owing: Path
) -> None:
    shown = on_terminal("purge", "shop", env=environment(database.app_url))
    assert shown.code == 1
    assert "0 purges settled, 1 owed" in shown.text
    assert "vectors" in shown.text
    assert "no index is plugged in: let the host's worker" in shown.text
    assert "planted" not in shown.text
    owner = environment(database.owner_url)
    done = piped("purge", "--all-tenants", "--json", env=owner, program=MAIN)
    assert done.returncode == 1
    [owed] = json.loads(done.stdout)["owed"]
    assert (owed["adapter"], owed["artefacts"], owed["attempts"]) == ("vectors", 2, 0)
    assert piped("purge", "--all-tenants", env=environment(database.app_url)).returncode == 3
    refused = piped("purge", "shop", "--watch", env=environment(database.app_url))
    assert (refused.returncode, b"no index is plugged in" in refused.stderr) == (2, True)
    assert (debts(database), len(names(owing))) == (2, 3)


async def test_with_the_hosts_index_it_settles_what_is_owed(
    database: Database, owing: Path
) -> None:
    host = [sys.executable, "-c", HOST]
    env = {**environment(database.app_url), "FOLDER": str(owing)}
    down = piped("purge", "shop", "--json", env={**env, "DOWN": "1"}, program=host)
    assert (down.returncode, b"planted" in down.stdout + down.stderr) == (1, False)
    [owed] = json.loads(down.stdout)["owed"]
    assert (owed["attempts"], owed["last_error"]) == (1, "ConnectionError")
    assert owed["next_try_at"] is not None
    done = piped("purge", "shop", "--json", env=env, program=host)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"settled": 1, "owed": []})
    assert (debts(database), names(owing)) == (1, ["neighbour", "planted-bank"])


@pytest.mark.parametrize("key", ["control-c", "sigterm"])
async def test_a_worker_settles_round_by_round_and_ends_cleanly(
    database: Database, owing: Path, key: str
) -> None:
    env = {**environment(database.owner_url), "FOLDER": str(owing)}
    command = ("purge", "--all-tenants", "--watch", "--interval", "0.2")
    with terminal(*command, env=env, program=[sys.executable, "-c", HOST]) as shown:
        shown.expect("2 purges settled")
        assert (debts(database), names(owing)) == (0, ["neighbour"])
        async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
            one = await service.remember("shop", text="text", subject_keys="planted-person")
            await service.register_artefact(
                "shop", adapter="vectors", artefact_id="planted-later", sources=one
            )
            # Unless the worker was quicker.
            with contextlib.suppress(PartialErasureError):
                await service.forget("shop", subject_key="planted-person")
        shown.expect("1 purges settled")
        (shown.interrupt if key == "control-c" else shown.terminate)()
        assert shown.end() == 0
    assert "Traceback" not in shown.text
    assert "planted" not in shown.text
    assert debts(database) == 0


async def test_an_erasure_with_the_hosts_index_is_complete(
    database: Database, tmp_path: Path
) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        one = await service.remember("shop", text="text", subject_keys="planted-person")
        await service.register_artefact(
            "shop", adapter="vectors", artefact_id="planted-one", sources=one
        )
    (tmp_path / "planted-one").touch()
    host = [sys.executable, "-c", HOST]
    env = {**environment(database.app_url), "FOLDER": str(tmp_path)}
    command = ("forget", "shop", "planted-person", "--yes", "--json")
    down = piped(*command, env={**env, "DOWN": "1"}, program=host)
    assert down.returncode == 1
    assert b"to be purged from vectors still" in down.stderr
    assert json.loads(down.stdout)["receipt"]["outstanding"] == ["vectors"]
    assert names(tmp_path) == ["planted-one"]
    done = piped(*command, env=env, program=host)
    assert (done.returncode, names(tmp_path)) == (0, [])
