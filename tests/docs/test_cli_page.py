"""The page of the command line: what it shows runs, and what it lists is what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import typer

from memory import Memory, PartialErasureError
from memory.cli import codes
from memory.cli.app import app
from memory.stores.postgres import PostgresStore
from pages import ROOT, Block, Page
from servers import Database
from terminals import environment, terminal

PAGE = Page(ROOT / "docs" / "cli.md")


@pytest.fixture
def shell(database: Database, tmp_path: Path) -> Callable[[Block], list[str]]:
    """Return what makes a block into a command, with the scripts that the page names."""
    scripts = tmp_path / "bin"
    scripts.mkdir()
    (operate,) = PAGE.blocks("python")
    host = tmp_path / "host.py"
    host.write_text(f"{operate.code}\n\noperate()\n")
    for name, target in (("memory", "-m memory.cli"), ("operate", str(host))):
        script = scripts / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {target} "$@"\n')
        script.chmod(0o755)

    def command(block: Block) -> list[str]:
        role = block.code.split("as the ")[1].split()[0].rstrip(",")
        url = {"application": database.app_url, "owner": database.owner_url}[role]
        variables = {"MEMORY_DATABASE_URL": url, "MEMORY_SUBJECT_PEPPER": "pepper"}
        given = [f"{name}={value}" for name, value in variables.items()]
        path = f"PATH={scripts}:{os.environ['PATH']}"
        return ["/usr/bin/env", path, *given, "/bin/sh", "-ec", block.code]

    return command


async def remember(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for person in ("dana", "li", "zoe"):
            await service.remember("shop", text="text", subject_keys=f"customer:{person}")


async def test_every_block_for_a_shell_runs(
    database: Database, tmp_path: Path, shell: Callable[[Block], list[str]]
) -> None:
    await remember(database)
    blocks = [block for block in PAGE.blocks("sh") if "background" not in block.code]
    assert len(blocks) == 3
    for block in blocks:
        done = subprocess.run(
            shell(block), cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, (block.code, done.stdout, done.stderr)
    assert (tmp_path / "case-4711.jsonl").read_text().count("\n") == 1
    assert '"complete": true' in (tmp_path / "receipt.json").read_text()
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        [left] = await service.records("shop")
        assert left.subject_keys == ("customer:zoe",)


async def test_the_worker_of_the_page_settles(
    database: Database,
    tmp_path: Path,
    shell: Callable[[Block], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "vectors").mkdir()
    for name in ("one", "neighbour"):
        (tmp_path / "vectors" / name).touch()
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        one = await service.remember("shop", text="text", subject_keys="customer:dana")
        await service.register_artefact("shop", adapter="vectors", artefact_id="one", sources=one)
        with pytest.raises(PartialErasureError):
            await service.forget("shop", subject_key="customer:dana")
    [block] = [block for block in PAGE.blocks("sh") if "background" in block.code]
    monkeypatch.chdir(tmp_path)
    with terminal(env=environment(), program=shell(block)) as shown:
        shown.expect("1 purges settled")
        shown.interrupt()
        shown.end()
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == ["neighbour"]
    with psycopg.connect(database.superuser_url) as superuser:
        assert superuser.execute("select count(*) from memory.purges").fetchone() == (0,)


def test_the_table_lists_the_commands_that_there_are() -> None:
    listed = {
        name
        for cell in re.findall(r"^\| (`memory [^|]+) \|", PAGE.text, re.MULTILINE)
        for name in _expanded(cell)
    }
    assert listed == set(_registered(app))


def _expanded(cell: str) -> list[str]:
    """``memory indexes build`` and ``list`` are two commands of one group."""
    first, *others = re.findall(r"`(?:memory )?([a-z ]+[a-z])", cell)
    group = first.rpartition(" ")[0]
    return [first, *(f"{group} {name}" for name in others)]


def _registered(of: typer.Typer) -> list[str]:
    found = [str(command.name) for command in of.registered_commands if not command.hidden]
    for group in of.registered_groups:
        if not group.hidden and group.typer_instance is not None:
            found += [f"{group.name} {name}" for name in _registered(group.typer_instance)]
    return found


def test_the_exit_codes_are_those_of_the_page() -> None:
    section = PAGE.text.split("## Exit codes")[1].split("\n## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert listed == {getattr(codes, name) for name in codes.__all__}
