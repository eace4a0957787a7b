"""What the pages show is executed; what they name exists."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

import memory
from memory import InstallError, Memory, PostgresStore, embedded, migrate
from memory.urls import normalize_url
from pages import ROOT, Block, Page, names_for, run, run_page
from peers import make_langgraph, make_mem0, mem0_payload
from servers import Database


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(params=pages(), ids=lambda path: path.name)
def page(request: pytest.FixtureRequest) -> Page:
    """Each page in turn."""
    return Page(request.param)


@pytest.fixture(scope="session")
def readme() -> Page:
    return Page(ROOT / "README.md")


def make_tickets(database: Database) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute(
            "create table public.tickets (title text, customer text,"
            " ticket_id bigint generated always as identity primary key)"
        )
        superuser.execute(
            f"grant select, insert, delete on public.tickets to {database.role('app')}"
        )


# Their SQL makes roles and databases: tests of their own run it.
SQL_RUN_ELSEWHERE = {"README.md", "permissions.md"}


def test_every_block_runs(
    page: Page, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = names_for(database)
    if page.path.name == "README.md":
        make_tickets(database)
    if page.path.name == "moving.md":
        make_langgraph(database)
        make_mem0(database, [mem0_payload("Dana bikes", user_id="dana"), mem0_payload("I help")])
        source = normalize_url(database.superuser_url)
        names["source_url"] = source.render_as_string(hide_password=False)
    monkeypatch.chdir(tmp_path)
    run_page(page, database, names, sql=page.path.name not in SQL_RUN_ELSEWHERE)


def test_the_joined_transaction_of_the_readme_writes_both_rows(
    readme: Page, database: Database
) -> None:
    make_tickets(database)
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        [block] = [b for b in readme.blocks("python") if "PostgresStore.joined" in b.code]
        url = normalize_url(database.app_url).render_as_string(hide_password=False)
        names = {"url": url, "pepper": "pepper"}
        run(block.code, name="README.md", line=block.line, names=names)
        counts = "select (select count(*) from tickets), (select count(*) from memory.records)"
        assert superuser.execute(counts).fetchone() == (1, 1)


READ_AGAIN = """
async with Memory(PostgresStore(url), subject_pepper=pepper) as service:
    history = await service.erasure_history("shop", limit=1000)
"""


def check_of_the_chain(root: Path) -> Block:
    blocks = Page(root / "docs/verify.md").blocks("python")
    [block] = [block for block in blocks if "tombstone_digest" in block.code]
    return block


@pytest.mark.parametrize("damage", ["derived = derived + 1", "previous = repeat('0', 64)"])
def test_the_check_of_the_chain_finds_an_edited_tombstone(
    root: Path, database: Database, damage: str
) -> None:
    block = check_of_the_chain(root)
    setup, check = re.split(r"(?m)^(?=previous = )", block.code)
    url = normalize_url(database.app_url).render_as_string(hide_password=False)
    names: dict[str, Any] = {"url": url, "pepper": "pepper"}
    run(setup + check, name="verify.md", line=block.line, names=names)
    with psycopg.connect(database.superuser_url) as superuser:
        superuser.execute("alter table memory.tombstones disable trigger user")
        superuser.execute(f"update memory.tombstones set {damage} where seq = 1")
    run(READ_AGAIN, name="read again", line=1, names=names)
    with pytest.raises(AssertionError):
        run(check, name="verify.md", line=block.line, names=names)


def test_the_check_of_the_chain_takes_as_many_pages_as_there_are(
    root: Path, database: Database
) -> None:
    block = check_of_the_chain(root)
    assert "limit=1000" in block.code
    code = block.code.replace("limit=1000", "limit=1")
    url = normalize_url(database.app_url).render_as_string(hide_password=False)
    names: dict[str, Any] = {"url": url, "pepper": "pepper"}
    run(code, name="verify.md", line=block.line, names=names)
    assert [tombstone.seq for tombstone in names["history"]] == [2, 1]


async def test_the_application_may_not_verify_but_an_auditor_may(database: Database) -> None:
    with pytest.raises(InstallError):
        await memory.verify_install(database.app_url)
    with psycopg.connect(database.owner_url, autocommit=True) as owner:
        owner.execute("select memory.grant_auditor(%s)", [database.role("app")])
    assert await memory.verify_install(database.app_url)


async def test_a_joined_erasure_and_a_dry_run_have_no_anchor_yet(database: Database) -> None:
    engine = create_async_engine(normalize_url(database.app_url))
    async with engine.begin() as connection:
        joined = Memory(PostgresStore.joined(connection), subject_pepper="pepper")
        await joined.remember("shop", text="Prefers mornings", subject_keys="7f3a")
        rehearsed = await joined.forget("shop", subject_key="7f3a", dry_run=True)
        receipt = await joined.forget("shop", subject_key="7f3a")
        assert (rehearsed.anchor, receipt.anchor) == (None, None)
    async with Memory(PostgresStore(engine), subject_pepper="pepper") as own:
        [tombstone] = await own.erasure_history("shop")
        assert tombstone.erasure_id == receipt.erasure_id
        await own.remember("shop", text="Prefers evenings", subject_keys="7f3a")
        anchor = (await own.forget("shop", subject_key="7f3a")).anchor
        assert anchor is not None
        assert anchor.seq == tombstone.seq + 1
    await engine.dispose()


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page are called in links to them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings(page: Page) -> None:
    missing = []
    for link, anchor in re.findall(r"\]\((?!\w+://)([^)#]*)#?([^)]*)\)", page.text):
        target = (page.path.parent / link).resolve() if link else page.path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(f"{link}#{anchor}")
    assert not missing


def test_files_and_extras_that_the_readme_names_exist(readme: Page, root: Path) -> None:
    files = re.findall(r"\b((?:examples|tests|docs)/[\w/.]+\.(?:py|md))", readme.text)
    assert {"examples/quickstart.py", "examples/replay.py"} <= set(files)
    assert [file for file in files if not (root / file).is_file()] == []
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"'\.\[(\w+)\]'|extra `([\w-]+)`", readme.text)
    named = {first or second for first, second in extras}
    frameworks = {"google-adk", "langgraph", "mcp", "openai-agents", "otel"}
    assert named == {"cli", "dev", "docs", "embedded", "examples", "local"} | frameworks
    assert named <= project["optional-dependencies"].keys()


# What changes how pip installs, and not what.
QUICKER = {"-q", "--quiet", "--disable-pip-version-check", "--no-compile"}


def test_the_test_command_is_what_integration_runs(readme: Page, root: Path) -> None:
    [block] = [b for b in readme.blocks("sh") if "pytest" in b.code]
    setup, command = block.code.strip().splitlines()
    script = (root / ".ci" / "run").read_text()
    assert script.strip().splitlines()[-1] == f"exec {command}"
    for step in setup.removeprefix("python3 ").split(" && "):
        words = [word for word in step.split() if word not in QUICKER]
        lines = [
            [word for word in line.split() if word not in QUICKER] for line in script.splitlines()
        ]
        assert any(line[-len(words) :] == words for line in lines), step


def test_the_two_lines_of_ini_are_the_ones_that_deploy(readme: Page, tmp_path: Path) -> None:
    [block] = [b for b in readme.blocks("sh") if "alembic.ini" in b.code]
    first, second = block.code.strip().splitlines()
    subprocess.run(["/bin/sh", "-c", first], cwd=tmp_path, check=True)
    # tests/migration/test_packaging.py deploys an installed wheel with exactly this.
    ini = (tmp_path / "alembic.ini").read_text()
    assert ini == "[alembic]\nscript_location = memory:migrations\n"
    assert second.endswith("alembic upgrade head")


async def test_the_roles_of_the_readme_deploy(readme: Page) -> None:
    [block] = readme.blocks("sql")
    [grant] = re.findall(r"`(select memory.grant_app\(.*?\);)`", readme.text)
    async with embedded.serve() as server:
        url = make_url(server.superuser_url)
        with psycopg.connect(server.superuser_url, autocommit=True) as superuser:
            for statement in block.code.strip().rstrip(";").split(";"):
                superuser.execute(statement)
        owner = url.set(username="owner", database="db").render_as_string()
        await migrate.upgrade(owner)
        with psycopg.connect(owner) as connection:
            connection.execute(grant)
        app = url.set(username="your_app_role", database="db").render_as_string()
        async with Memory(PostgresStore(app), subject_pepper="pepper") as service:
            assert (await service.ready()).problems == ()


def test_the_changelog_says_what_is_not_released_yet(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text()
    section = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert re.search(r"^Revisions: ", section[1], re.MULTILINE)
    assert re.search(r"^### Added\n\n- ", section[1], re.MULTILINE)


def test_the_tutorial_installs_what_the_readme_does(readme: Page, root: Path) -> None:
    [block] = Page(root / "docs/tutorial.md").blocks("sh")
    install, start = block.code.strip().splitlines()
    [quickstart] = [b for b in readme.blocks("sh") if "quickstart.py" in b.code]
    assert quickstart.code.startswith(f"{install} && .venv/bin/python ")
    assert start == ".venv/bin/python -m asyncio"
