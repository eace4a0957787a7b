"""Try the package under the other Pythons that are here, and print which they were.

Each gets a fresh environment with the extras ``embedded`` and ``test``, runs the quickstart and a
quick part of the tests, with warnings as errors: the units without their random cases, and of the
contract a part on the store in memory, and the life of a record on PostgreSQL. A Python that is
absent is named and is no failure. Whatever else is printed goes to standard error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
FOLDER = ROOT / ".venv" / "pythons"

# What needs no other extra, and takes no time.
UNITS = (
    "database", "ddl", "failures", "fingerprint", "ids", "lineage", "ranking", "service",
    "service_plugs", "tokens", "tombstones", "turns", "types", "urls", "validation", "versions",
)  # fmt: skip
CONTRACT = ("derive", "lifecycle", "remember")
SELECTION = "not pgvector and not pgbouncer and not postgres_16 and (not postgres or lifecycle)"
TESTS = (
    *(f"tests/unit/test_{name}.py" for name in UNITS),
    # It reads patterns with the standard library's own parser, which differs by version.
    "tests/unit/redaction/test_linear.py",
    *(f"tests/contract/test_{name}.py" for name in CONTRACT),
    *("-m", "not hypothesis", "-k", SELECTION),
    *("-q", "-p", "no:cacheprovider"),
)


def find(version: str) -> str | None:
    """Return a Python of this version that runs: on the path, or one of pyenv's."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, reversed(pyenv))):
        # What pyenv puts on the path may stand for a version that is not chosen.
        if found and not subprocess.run([found, "-V"], capture_output=True).returncode:
            return found
    return None


def prove(interpreter: str) -> str:
    """Install and try the package; return the version, or raise with what was printed."""
    name = run(interpreter, "-c", "import platform; print(platform.python_version())").strip()
    started, folder = time.perf_counter(), FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    run(interpreter, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    options = ("--quiet", "--no-compile", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", *options, "-e", f"{ROOT}[embedded,test]")
    run(python, "-W", "error", "examples/quickstart.py")
    last = run(python, "-m", "pytest", *TESTS).strip().splitlines()[-1]
    took = time.perf_counter() - started
    sys.stderr.write(f"Python {name}: the quickstart; {last}; {took:.0f} s in all\n")
    return name


def run(*command: str | Path) -> str:
    """Run a command in the checkout; return what it printed."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Try all at once, and print one line."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    there = {version: find(version) for version in SUPPORTED if version != own}
    with ThreadPoolExecutor() as pool:
        tried = list(pool.map(prove, filter(None, there.values())))
    absent = [version for version, interpreter in there.items() if interpreter is None]
    sys.stdout.write(f"quickly {', '.join(tried) or 'none'}; absent: {', '.join(absent) or 'none'}")


if __name__ == "__main__":
    main()
