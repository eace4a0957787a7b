"""What the host plugged in, and the ``Memory`` that a command works on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import typer

from memory.cli.running import database_url
from memory.errors import InstallError, InvalidInputError
from memory.ports import DerivedIndex, Embedder
from memory.service import Memory
from memory.stores.postgres import PostgresStore

__all__ = ["Plugs", "opened", "plugs"]


@dataclass(frozen=True, kw_only=True)
class Plugs:
    """See :func:`memory.cli.main`."""

    indexes: tuple[DerivedIndex, ...] = ()
    embedder: Embedder | None = None


def plugs(context: typer.Context) -> Plugs:
    """Return what ``main`` was given."""
    return context.find_object(Plugs) or Plugs()


@asynccontextmanager
async def opened(
    context: typer.Context, store: PostgresStore | None = None
) -> AsyncIterator[Memory]:
    """Open the memory of the environment, if it is fit to work on.

    The pepper has to be there, if empty: the first process that writes without one would settle
    that there is none.
    """
    pepper = os.environ.get("MEMORY_SUBJECT_PEPPER")
    if pepper is None:
        raise InvalidInputError(
            "MEMORY_SUBJECT_PEPPER", "must hold the pepper, or be empty where there is none"
        )
    store = store or PostgresStore(database_url())
    async with Memory(
        store, subject_pepper=pepper or None, indexes=plugs(context).indexes
    ) as memory:
        state = await memory.ready()
        if not state.ready:
            raise InstallError("; ".join(state.problems))
        yield memory
