"""A benchmark run as a command, with so little to do that its times mean nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def quick_run(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Runs a script of this folder with ``--quick`` and returns its figures."""

    def run(script: str) -> dict[str, Any]:
        file = tmp_path / "figures.json"
        path = str(Path(__file__).with_name(script))
        command = [sys.executable, path, "--quick", "--json", str(file)]
        given = os.environ.get("MEMORY_DATABASE_URL") or os.environ.get("DATABASE_URL")
        command += ["--database", given] if given else []
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        found: dict[str, Any] = json.loads(file.read_text())
        assert json.loads(done.stdout.splitlines()[-1]) == found
        return found

    return run
