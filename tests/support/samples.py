"""The examples: run as a newcomer would run them, or imported."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from servers import ROOT

__all__ = ["EXAMPLES", "example", "load", "start"]

EXAMPLES: Final = ROOT / "examples"


def start(
    name: str, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run an example from another folder."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("DATABASE_URL")}
    script = EXAMPLES / name
    return subprocess.run(
        [sys.executable, "-W", "error", str(script), *map(str, arguments)],
        cwd=ROOT.parent,
        env={**clean, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
    )


def example(name: str, *arguments: str | Path, **environment: str) -> str:
    """Run an example that succeeds; return what it printed."""
    done = start(name, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def load(name: str) -> ModuleType:
    """Import a file of the examples."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
