"""The notebooks run from a fresh kernel, and show what is committed.

Ids, digests and times differ in each run; what is committed has others in their place, numbered in
the order in which they appear. With ``MEMORY_REGENERATE_GOLDEN`` set, outputs are written first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from steady import steady

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))
MOST_CELLS = 15


def shown(output: dict[str, Any]) -> dict[str, Any]:
    """What a reader sees; not the ``repr`` beside a table or a picture."""
    kept = {key: value for key, value in output.items() if key in {"output_type", "name", "text"}}
    if data := output.get("data"):
        kept["data"] = {kind: data[kind] for kind in data if len(data) == 1 or kind != "text/plain"}
    if "data" in output:
        kept["metadata"] = {}
    if "execution_count" in output:
        kept["execution_count"] = output["execution_count"]
    return kept


def executed(notebook: Any, folder: Path) -> Any:
    """The notebook after all of its cells ran in order, with stable outputs."""
    fresh = nbformat.from_dict(notebook)
    resources = {"metadata": {"path": str(folder)}}
    # Sockets in a folder, not ports that anybody on the machine may try; its name must be short.
    with TemporaryDirectory() as sockets:
        config = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        NotebookClient(fresh, config=config, timeout=120, resources=resources).execute()
    outputs = [[shown(output) for output in cell.get("outputs", [])] for cell in fresh.cells]
    same = json.loads(steady()(json.dumps(outputs, ensure_ascii=False)))
    for cell, stable in zip(fresh.cells, same, strict=True):
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.outputs = [nbformat.from_dict(output) for output in stable]
    return fresh


def test_they_are_these() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"forget_and_prove", "quickstart", "semantic_recall", "tenants_and_pools"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_is_committed(path: Path, tmp_path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)
    assert len(committed.cells) <= MOST_CELLS
    found = executed(committed, tmp_path)
    if os.environ.get("MEMORY_REGENERATE_GOLDEN"):
        path.write_text(nbformat.writes(found) + "\n", encoding="utf-8")
    pairs = zip(found.cells, committed.cells, strict=True)
    for number, (ran, kept) in enumerate(pairs, 1):
        assert ran.get("outputs") == kept.get("outputs"), f"cell {number}"
        assert ran.get("execution_count") == kept.get("execution_count")
    assert not any(
        out.get("name") == "stderr" for cell in found.cells for out in cell.get("outputs", [])
    )
