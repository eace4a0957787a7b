"""``python -m memory.cli``, where the script ``memory`` is not on the path."""

from __future__ import annotations

from memory.cli import main

if __name__ == "__main__":
    main()
