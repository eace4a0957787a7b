"""What an embedded server cannot be started with: said clearly, and nothing is left behind."""

from __future__ import annotations

import fcntl
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from memory import cluster, datadir, embedded
from memory.errors import InstallError, InvalidInputError, StoreUnavailableError
from serving import ask


async def test_a_directory_of_something_else_is_refused_and_kept(data: Path) -> None:
    data.mkdir()
    (data / "thesis.txt").write_text("three years")
    with pytest.raises(InvalidInputError) as caught:
        await embedded.serve(data).__aenter__()
    assert caught.value.field == "path"
    assert (data / "thesis.txt").read_text() == "three years"


@pytest.mark.parametrize("name", ["file", "file/below", "nul\0"])
async def test_a_path_where_no_directory_can_be_is_refused_and_not_quoted(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("three years")
    with pytest.raises(InvalidInputError, match="path: must be a directory") as caught:
        await embedded.serve(tmp_path / name).__aenter__()
    assert caught.value.__context__ is None
    assert (tmp_path / "file").read_text() == "three years"


async def test_a_directory_of_another_version_is_refused_and_opens_with_its_own(
    data: Path,
) -> None:
    async with embedded.serve(data, postgres_version=16):
        pass
    with pytest.raises(InstallError, match="PostgreSQL 16"):
        await embedded.serve(data).__aenter__()
    async with embedded.serve(data, postgres_version=16) as server:
        assert await ask(server.url, "select 1") == 1


async def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        await embedded.serve(postgres_version=17).__aenter__()
    assert caught.value.field == "postgres_version"


async def test_without_the_extra_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(InstallError, match=r"erasable-memory\[embedded\]"):
        await embedded.serve().__aenter__()


async def test_a_setting_that_stops_the_start_is_a_clear_error_and_leaves_nothing(
    data: Path,
) -> None:
    with pytest.raises(StoreUnavailableError, match="did not start"):
        await embedded.serve(data, settings={"work_mem": "a lot"}).__aenter__()
    assert not (data / "postmaster.pid").exists()
    async with embedded.serve(data, settings={"work_mem": "7MB"}) as server:
        assert await ask(server.url, "select 1") == 1


async def test_settings_that_are_no_strings_are_refused(data: Path) -> None:
    settings: Any = {"max_connections": 7}
    with pytest.raises(InvalidInputError, match="settings: must be strings"):
        await embedded.serve(data, settings=settings).__aenter__()


async def test_no_setting_and_no_path_is_read_by_a_shell(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    touched = tmp_path / "touched"
    data = tmp_path / '$(cd .. && touch touched)"`'
    with pytest.raises(StoreUnavailableError, match="did not start"):
        await embedded.serve(data, settings={f"work_mem=7MB; touch {touched};": ""}).__aenter__()
    async with embedded.serve(data, settings={"application_name": "$(id) '\""}) as server:
        assert await ask(server.url, "show work_mem") == "4MB"
    assert not touched.exists()


async def test_a_directory_that_another_process_holds_is_a_clear_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with embedded.serve(data):
        pass
    monkeypatch.setattr(datadir, "_LOCK_SECONDS", 0.2)
    starting = os.open(data, os.O_RDONLY)
    fcntl.flock(starting, fcntl.LOCK_EX)
    with pytest.raises(StoreUnavailableError, match="another process"):
        await embedded.serve(data).__aenter__()
    os.close(starting)
    async with embedded.serve(data) as server:
        assert await ask(server.url, "select 1") == 1


async def test_a_directory_of_another_user_is_a_clear_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(datadir.os, "open", refuse)
    with pytest.raises(InstallError, match="another user"):
        await embedded.serve(data).__aenter__()


async def test_a_damaged_schema_is_an_install_error_without_the_driver_in_it(data: Path) -> None:
    async with embedded.serve(data) as server:
        await ask(server.owner_url, "alter function memory.grant_app rename to lost")
    with pytest.raises(InstallError) as caught:
        await embedded.serve(data).__aenter__()
    assert caught.value.__context__ is None
    assert not (data / "postmaster.pid").exists()


async def test_programs_that_cannot_be_run_are_an_install_error(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_find_binaries", lambda version: tmp_path)
    with pytest.raises(InstallError, match="cannot be run"):
        await embedded.serve(data).__aenter__()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs a system user")
async def test_root_without_a_way_to_make_a_user_is_told_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "_SYSTEM_USER", "memory-absent")
    monkeypatch.setattr(cluster.shutil, "which", lambda program: None)
    with pytest.raises(InstallError, match="memory-absent"):
        await embedded.serve().__aenter__()
