"""The benchmark of recall by words runs and reports everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_a_quick_run_reports_every_figure(tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("words.py"))
    file = tmp_path / "figures.json"
    command = [sys.executable, script, "--quick", "--json", str(file)]
    given = os.environ.get("MEMORY_DATABASE_URL") or os.environ.get("DATABASE_URL")
    command += ["--database", given] if given else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    found = json.loads(file.read_text())
    assert json.loads(done.stdout.splitlines()[-1]) == found
    assert found["sizes"] == {"small": 60, "middle": 90, "large": 0}
    asked = {
        f"{tenant} {kind} {strategy}"
        for tenant in ("small", "middle")
        for kind in ("natural", "common")
        for strategy in ("lexical", "keyword")
    }
    for when in ("before_vacuum", "after_vacuum"):
        assert found[when].keys() == {"postings_bytes_a_record", "all_visible"} | asked
    assert found["after_vacuum"]["all_visible"] == 1
    assert found["writing"].keys() == {"one_us", "one_ratio", "bulk_us_a_record", "bulk_ratio"}
