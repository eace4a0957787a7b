"""Run by ``.ci/adk`` in an environment of its own.

google-adk allows no OpenTelemetry that is newer than 1.44, which other extras may want.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    version("google-adk")
except PackageNotFoundError:
    collect_ignore_glob = ["test_*.py"]
