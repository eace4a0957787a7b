"""A benchmark run as a command, with so little to do that its times mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers import Postgres


@pytest.fixture
def quick_run(tmp_path: Path, server: Postgres) -> Callable[..., dict[str, Any]]:
    """Runs a script of this folder with ``--quick`` and returns its figures.

    On the server under test, or for ``own_server`` on one of its own, as a benchmark runs.
    """

    def run(script: str, *, own_server: bool = False) -> dict[str, Any]:
        file = tmp_path / "figures.json"
        path = str(Path(__file__).with_name(script))
        command = [sys.executable, path, "--quick", "--json", str(file)]
        if not own_server:
            command += ["--database", server.url("superuser", "postgres")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        found: dict[str, Any] = json.loads(file.read_text())
        assert json.loads(done.stdout.splitlines()[-1]) == found
        return found

    return run
