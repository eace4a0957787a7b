"""``memory reembed``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from memory.cli.bars import bar
from memory.cli.plugs import plugs
from memory.cli.printing import Json, as_json, print_line
from memory.cli.running import database_url, run
from memory.errors import InvalidInputError
from memory.maintenance.reembedding import Reembedded
from memory.maintenance.reembedding import reembed as embed_anew
from memory.maintenance.walking import Portion
from memory.ports import Embedder

__all__ = ["reembed"]


def reembed(
    context: typer.Context,
    tenant: Annotated[str | None, typer.Option(help="This tenant only.")] = None,
    local: Annotated[
        bool, typer.Option("--local", help="With the MiniLM embedder of the extra local.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Also what has words and no vector.")
    ] = False,
    unnamed: Annotated[
        bool, typer.Option("--unnamed", help="Also vectors that name no model.")
    ] = False,
    wordless: Annotated[
        bool,
        typer.Option("--wordless", help="Also what has neither: written as not searchable, too."),
    ] = False,
    batch: Annotated[int, typer.Option(help="Texts to a call, at most 1,000.")] = 256,
    json: Json = False,
) -> None:
    """Embed anew what another model embedded; called again, goes on after an interruption.

    The script "memory" knows one embedder, --local. See docs/cli.md for plugging in another.
    """
    taken = {"missing": missing, "unnamed": unnamed, "wordless": wordless}
    with bar() as progress:
        done = run(_reembed(context, local, tenant, taken, batch=batch, progress=progress))
    if json:
        as_json(asdict(done))
    else:
        print_line(f"{done.records} records of {done.tenants} tenants embedded anew")


async def _reembed(
    context: typer.Context,
    local: bool,
    tenant: str | None,
    taken: Mapping[str, bool],
    *,
    batch: int,
    progress: Portion,
) -> Reembedded:
    return await embed_anew(
        database_url(),
        _embedder(context, local),
        tenant_key=tenant,
        batch=batch,
        progress=progress,
        **taken,
    )


def _embedder(context: typer.Context, local: bool) -> Embedder:
    if local:
        from memory.integrations.minilm import MiniLMEmbedder  # noqa: PLC0415 - slow to import

        return MiniLMEmbedder()
    given = plugs(context).embedder
    if given is None:
        raise InvalidInputError(
            "--local", "must be given, or an embedder to memory.cli.main(embedder=...)"
        )
    return given
