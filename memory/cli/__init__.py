"""The command line ``memory``, for operators. In the extra ``cli``.

It imports nothing by name: a host whose erasures reach external indexes, or that embeds with a
model of its own, starts the same commands from three lines of its own::

    from memory.cli import main

    main(indexes=[TheIndex()], embedder=TheEmbedder())
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from memory.ports import DerivedIndex, Embedder

__all__ = ["main"]

_NEEDED = {"rich", "typer"}


def main(*, indexes: Sequence[DerivedIndex] = (), embedder: Embedder | None = None) -> NoReturn:
    """Run the command line and end the process; say what to install where the extra is absent.

    ``indexes`` are asked by forget, release, expire and purge; ``embedder`` is what reembed uses.

    >>> import sys
    >>> from memory.cli import main
    >>> sys.argv = ["memory", "--version"]
    >>> main()
    Traceback (most recent call last):
        ...
    SystemExit: 0
    """
    try:
        from memory.cli.app import start  # noqa: PLC0415 - typer may be absent
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        sys.stderr.write("memory: the command line needs: pip install 'erasable-memory[cli]'\n")
        sys.exit(3)
    sys.exit(start(indexes, embedder))
