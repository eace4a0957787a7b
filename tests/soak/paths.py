"""Makes tests/support importable where a script of this folder is run as a command."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))
