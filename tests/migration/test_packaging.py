"""The wheel as a deployment gets it: in an environment of its own, far from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import psycopg
import pytest

from servers import Database


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    # Neither another database nor the checkout may come in by the environment.
    clean = {k: v for k, v in os.environ.items() if not k.endswith(("DATABASE_URL", "PYTHONPATH"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**clean, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # Built from a copy: a build must leave nothing in the checkout.
    shutil.copytree(root, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "tests"))
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    pip = (folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_carries_the_migrations_inside_the_package(wheel: Path, root: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    # A folder alembic at the top would overwrite the real package on the host's machine.
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"memory", f"{'-'.join(wheel.stem.split('-')[:2])}.dist-info"}
    revisions = (root / "alembic" / "versions").iterdir()
    wanted = {file.name for file in revisions if file.suffix in {".py", ".sql"}}
    assert {f"memory/migrations/versions/{name}" for name in wanted} <= names
    assert {"memory/migrations/env.py", "memory/migrations/script.py.mako"} <= names
    assert "memory/py.typed" in names


def test_the_wheel_carries_the_vocabulary_with_its_licence_and_notice(
    wheel: Path, root: Path
) -> None:
    folder = "memory/integrations/bert_uncased"
    info = f"{'-'.join(wheel.stem.split('-')[:2])}.dist-info"
    with zipfile.ZipFile(wheel) as packed:
        for name in ("vocab.txt", "LICENSE", "NOTICE"):
            assert packed.read(f"{folder}/{name}") == (root / folder / name).read_bytes()
        licences = {name for name in packed.namelist() if name.startswith(f"{info}/licenses/")}
        described = packed.read(f"{info}/METADATA").decode()
    given = ("LICENSE", f"{folder}/LICENSE", f"{folder}/NOTICE")
    assert licences == {f"{info}/licenses/{name}" for name in given}
    assert "License-Expression: MIT AND Apache-2.0" in described


def test_two_lines_of_ini_deploy_it(scripts: Path, empty: Database, tmp_path: Path) -> None:
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = memory:migrations\n")
    url = {"MEMORY_DATABASE_URL": empty.owner_url}
    run(scripts / "alembic", "upgrade", "head", cwd=tmp_path, **url)
    assert "(head)" in run(scripts / "alembic", "current", "--check-heads", cwd=tmp_path, **url)
    assert "CREATE TABLE memory.records" in run(
        scripts / "alembic", "upgrade", "head", "--sql", cwd=tmp_path
    )
    with psycopg.connect(empty.owner_url, autocommit=True) as owner:
        owner.execute("select memory.grant_app(%s)", [empty.role("app")])
    run(scripts / "python", "-W", "error", "-c", SERVE, cwd=tmp_path, URL=empty.app_url)
    with psycopg.connect(empty.superuser_url) as superuser:
        assert superuser.execute("select text from memory.records").fetchall() == [("kept",)]


# What the application does with nothing but the wheel and what it depends on.
SERVE = """
import asyncio, os
from memory import Memory, PostgresStore

async def main():
    async with Memory(PostgresStore(os.environ["URL"]), subject_pepper="pepper") as service:
        assert (await service.ready()).problems == ()
        for person, text in {"ann": "erased", "zoe": "kept"}.items():
            await service.remember("shop", text=text, subject_keys=person)
        assert (await service.forget("shop", subject_key="ann")).counts.memories == 1

asyncio.run(main())
"""


def test_the_installed_package_migrates_from_code(
    scripts: Path, empty: Database, tmp_path: Path
) -> None:
    program = (
        "import asyncio, os, memory.migrate as m\n"
        "assert m.location().name == 'migrations', m.location()\n"
        "asyncio.run(m.upgrade(os.environ['MEMORY_DATABASE_URL']))"
    )
    url = {"MEMORY_DATABASE_URL": empty.owner_url}
    run(scripts / "python", "-c", program, cwd=tmp_path, **url)
    with psycopg.connect(empty.owner_url) as owner:
        assert owner.execute("select count(*) from memory.records").fetchone() == (0,)


def test_a_host_takes_the_revisions_into_its_own_history(
    scripts: Path, empty: Database, root: Path, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    shutil.copytree(root / "examples" / "host_alembic", host)
    url = {"DATABASE_URL": empty.owner_url}
    with psycopg.connect(empty.superuser_url, autocommit=True) as superuser:
        superuser.execute(f"grant create on schema public to {empty.role('owner')}")
    run(scripts / "alembic", "upgrade", "heads", cwd=host, **url)
    current = run(scripts / "alembic", "current", cwd=host, **url)
    assert "host_0001 (head)" in current
    assert current.count("(head)") == 2
    assert "No new upgrade operations" in run(scripts / "alembic", "check", cwd=host, **url)
    with psycopg.connect(empty.owner_url) as owner:
        tables = "select to_regclass('public.tickets'), to_regclass('memory.alembic_version')"
        assert owner.execute(tables).fetchone() == ("tickets", None)
    run(scripts / "alembic", "downgrade", "host@base", cwd=host, **url)
