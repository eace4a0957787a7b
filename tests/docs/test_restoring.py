"""The drill of the runbook, on a base backup, and the job of the night after a restore."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memory import Memory, PostgresStore, embedded
from memory.cluster import _find_binaries
from pages import ROOT, Page
from restores import backup, opened
from servers import Database
from terminals import environment, piped

RUNBOOK, CLI = Page(ROOT / "docs" / "runbook.md"), Page(ROOT / "docs" / "cli.md")
BINARIES = _find_binaries(18)
STREAM, BACKUP = "tombstones-2026-11-29.jsonl", "backup-2026-10-31"


# As root no server starts: its programs are run as the user that it has then.
AS_USER = """#!{python}
import os, pwd, sys
if os.geteuid() == 0:
    user = pwd.getpwnam("pgserver")
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""


def shell(code: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a block of a page in the folder, where programs of that name are."""
    scripts = folder / "bin"
    scripts.mkdir(exist_ok=True)
    pg_ctl = AS_USER.format(python=sys.executable, program=str(BINARIES / "pg_ctl"))
    programs = {
        "memory": f'#!/bin/sh\nexec {sys.executable} -m memory.cli "$@"\n',
        "pg_ctl": pg_ctl,
    }
    for name, text in programs.items():
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o755)
    return subprocess.run(
        ["/bin/sh", "-ec", code],
        cwd=folder,
        env={**env, "PATH": f"{scripts}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )


async def test_the_drill_of_the_runbook_shows_who_is_back_and_erases_them_again() -> None:
    [drill] = [block for block in RUNBOOK.blocks("sh") if "pg_ctl" in block.code]
    async with embedded.serve() as server:
        folder = Path(server.data_directory).parent / f"drill-{os.getpid()}"
        folder.mkdir(mode=0o755)
        try:
            await _prepare(server, folder)
            if os.geteuid() == 0:
                for path in (folder, *folder.rglob("*")):
                    shutil.chown(path, "pgserver", "pgserver")
            code = drill.code.replace("owner@/db", "memory_owner@/memory")
            done = shell(code, folder, environment(pepper="p"))
            assert done.returncode == 0, done.stdout + done.stderr
            assert "resurrected" in done.stdout
            assert "back, as they should be here\n" in done.stdout
            assert "1 people and 1 records erased again; 0 of 1" in done.stdout
            assert not (folder / "scratch").exists()
        finally:
            shutil.rmtree(folder)


async def _prepare(server: embedded.Server, folder: Path) -> None:
    async with Memory(PostgresStore(server.url), subject_pepper="p") as service:
        for person in ("dana", "li"):
            await service.remember("shop", text="text", subject_keys=person)
        given = ["-h", server.data_directory, "-U", "postgres", "-D", str(folder / BACKUP)]
        subprocess.run([BINARIES / "pg_basebackup", *given, "-c", "fast"], check=True)
        await service.forget("shop", subject_key="dana")
    owner = environment(server.owner_url, "p")
    assert piped("tombstones", "export", "--output", folder / STREAM, env=owner).returncode == 0


@pytest.mark.parametrize("replayed", [False, True])
async def test_the_nightly_job_stops_on_a_restored_database_and_goes_on_after_a_replay(
    database: Database, tmp_path: Path, replayed: bool
) -> None:
    [job] = [block for block in CLI.blocks("sh") if "expire --all-tenants" in block.code]
    async with opened(database) as service:
        for person in ("dana", "li"):
            await service.remember("shop", text="text", subject_keys=person)
    with backup(database) as restored:
        async with opened(database) as service:
            await service.forget("shop", subject_key="dana")
        first = shell(job.code, tmp_path, environment(database.owner_url, "p"))
        assert first.returncode == 0, first.stderr
        [kept] = tmp_path.glob("tombstones-*.jsonl")
        kept = kept.rename(tmp_path / STREAM)
        before, env = kept.read_bytes(), environment(restored.owner_url, "p")
        if replayed:
            assert piped("tombstones", "replay", kept, env=env).returncode == 0
        done = shell(job.code, tmp_path, env)
        assert (done.returncode, "resurrected" in done.stdout) == (
            0 if replayed else 1,
            not replayed,
        )
        assert len(list(tmp_path.glob("tombstones-*.jsonl"))) == 1 + replayed
        assert kept.read_bytes() == before
