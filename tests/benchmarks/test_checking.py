"""The benchmark of checking runs, finds nothing wrong, and reports every figure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_a_quick_run_reports_every_figure(tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("checking.py"))
    file = tmp_path / "figures.json"
    command = [sys.executable, script, "--quick", "--json", str(file)]
    given = os.environ.get("MEMORY_DATABASE_URL") or os.environ.get("DATABASE_URL")
    command += ["--database", given] if given else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    found = json.loads(file.read_text())
    assert json.loads(done.stdout.splitlines()[-1]) == found
    assert found["calls"].keys() == {"verify_install", "check", "check with the pepper"}
    for figures in found["calls"].values():
        assert figures["seconds"] > 0
        assert figures["peak"] > figures["rise"]
    checked = found["calls"]["check with the pepper"]
    assert checked["faults"] == 0
    # Each with about twenty postings and a link.
    assert checked["rows"] > 10 * found["records"]
    assert found["records"] == 910
