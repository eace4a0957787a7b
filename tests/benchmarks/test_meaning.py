"""The benchmark of recall by meaning runs and reports everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHOSEN = {"recall", "through_index", "ours_ms", "raw_ms", "ratio"}


def test_a_quick_run_reports_every_figure(tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("meaning.py"))
    file = tmp_path / "figures.json"
    command = [sys.executable, script, "--quick", "--json", str(file)]
    given = os.environ.get("MEMORY_DATABASE_URL") or os.environ.get("DATABASE_URL")
    command += ["--database", given] if given else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    found = json.loads(file.read_text())
    assert json.loads(done.stdout.splitlines()[-1]) == found
    assert found["by_person"]["growth_buffers"] <= found["by_person"]["at_most"]
    assert found["across"].keys() == {"t0.1", "t1", "t10", "t90"}
    for figures in found["across"].values():
        assert figures.keys() == CHOSEN
        # So few are all compared.
        assert (figures["recall"], figures["through_index"]) == (1, 0)
    for when in ("before", "after", "maintained"):
        assert found["churn"][when].keys() == CHOSEN | {"index_mb"}
    assert {"reindex_s", "vacuum_s"} < found["churn"].keys()
    assert found["build"].keys() == {"seconds", "mb"}
    assert found["insert"].keys() == {"indexed_ms", "plain_ms", "ratio"}
    assert found["plan"]["records"] == 4_000
