"""An MCP server over standard input and output: ``memory-mcp``; extra ``mcp``.

Which tenant, which database and which people is settled when it starts, by whoever starts it: no
tool takes a tenant or a URL. What is wrong with a call is said by field and rule, never by value;
logs go to standard error and hold none either. It ends when its client goes.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from memory import validation
from memory.errors import InstallError, InvalidInputError, MemoryServiceError
from memory.ports import DerivedIndex, Embedder
from memory.service import Memory, TenantMemory
from memory.stores.postgres import PostgresStore

try:
    from mcp import MCPError
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import INVALID_PARAMS
    from pydantic import ValidationError

    from memory.integrations.mcp_tools import ANNOTATIONS, Tools
except ImportError:
    raise InstallError("needs: pip install 'erasable-memory[mcp]'") from None

__all__ = ["main", "memory_server"]

_logger = logging.getLogger(__name__)


def memory_server(
    memory: TenantMemory,
    *,
    subject_keys: str | Sequence[str] | None = None,
    read_only: bool = False,
) -> MCPServer[Any]:
    """Return a server of the tenant's memory, for a transport of your own.

    With ``subject_keys`` it is for these people: a call about anybody else is refused. With
    ``read_only`` it offers neither ``remember`` nor ``forget``. Whoever can call it can do what it
    offers: over HTTP, authentication is yours.

    >>> from mcp import Client
    >>> from memory import Memory
    >>> from memory.integrations.mcp_server import memory_server
    >>> server = memory_server(Memory(subject_pepper="secret").for_tenant("shop"))
    >>> async with Client(server) as client:
    ...     named = {"text": "Dana moved", "subject_keys": ["customer:dana"]}
    ...     answer = await client.call_tool("remember", named)
    >>> answer.structured_content["text"]
    'Dana moved'
    """
    only = None if subject_keys is None else validation.subject_keys(subject_keys)
    offered = Tools(memory, only)
    tools = []
    for name, hints in ANNOTATIONS.items():
        if read_only and not hints.read_only_hint:
            continue
        tool = Tool.from_function(getattr(offered, name), annotations=hints)
        tool.parameters["additionalProperties"] = False
        tools.append(tool)
    return _Server(
        "erasable-memory",
        instructions=(
            "Long-term memory about people that can be erased. Name the people by their keys in"
            " every call. To erase somebody: forget_dry_run, show the user what it says, then"
            " forget with its closure."
        ),
        tools=tools,
        log_level="WARNING",
    )


class _Server(MCPServer[Any]):
    """Says what is wrong with a call without repeating any of it."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        if name not in known:
            raise ToolError(f"there is no such tool, only {', '.join(known)}")
        if not arguments.keys() <= known[name].keys():
            raise ToolError(f"{name} takes {', '.join(known[name])} and nothing else")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            reason = _reason(error.__cause__)
        # Raised out here: the error of a validator holds what it refused.
        raise ToolError(reason)

    async def get_prompt(self, *_: Any, **__: Any) -> NoReturn:
        raise MCPError(INVALID_PARAMS, "there are no prompts here")

    async def read_resource(self, *_: Any, **__: Any) -> NoReturn:
        raise MCPError(INVALID_PARAMS, "there are no resources here")


def _reason(cause: BaseException | None) -> str:
    if isinstance(cause, ValidationError):
        found = cause.errors(include_url=False, include_context=False, include_input=False)
        return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found)
    if isinstance(cause, MemoryServiceError):
        return str(cause)
    # An embedder of the host's may quote in its message.
    _logger.error("a tool failed: %s", type(cause).__name__)
    return f"unforeseen: {type(cause).__name__}"


def _content_free(record: logging.LogRecord) -> bool:
    """Keep of a line that is not ours where it comes from, and the class of what was raised.

    What the protocol's own code logs of a message has names and values of the client's in it.
    """
    if record.name.partition(".")[0] != "memory":
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        record.msg, record.args = f"{record.name}:{record.lineno} {kind}".rstrip(), ()
        record.exc_info = record.exc_text = record.stack_info = None
    return True


def main(
    arguments: Sequence[str] | None = None,
    *,
    indexes: Sequence[DerivedIndex] = (),
    embedder: Embedder | None = None,
) -> NoReturn:
    """Serve until the client goes, and end the process: 0, 2 for wrong settings, 3 for a database.

    ``MEMORY_DATABASE_URL`` and ``MEMORY_SUBJECT_PEPPER`` (which may be empty where there is none)
    come from the environment, the tenant from ``--tenant`` or ``MEMORY_TENANT``. A host with
    ``indexes`` or an ``embedder`` of its own starts it from three lines of its own.

    >>> from memory.integrations.mcp_server import main
    >>> main(["--help"])
    Traceback (most recent call last):
        ...
    SystemExit: 0
    """
    given = _parser().parse_args(arguments)
    try:
        asyncio.run(_serve(given, indexes, embedder))
    except InvalidInputError as error:
        code, message = 2, str(error)
    except MemoryServiceError as error:
        code, message = 3, str(error)
    except KeyboardInterrupt:
        code, message = 130, "interrupted"
    else:
        sys.exit(0)
    sys.stderr.write(f"memory-mcp: {message}\n")
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memory-mcp",
        description="Serve one tenant's memory over standard input and output, as MCP tools.",
        epilog="MEMORY_DATABASE_URL and MEMORY_SUBJECT_PEPPER are read from the environment.",
    )
    parser.add_argument("--tenant", metavar="KEY", help="whose memory; else MEMORY_TENANT")
    parser.add_argument(
        "--subject", metavar="KEY", action="append", help="only about this person; repeatable"
    )
    parser.add_argument("--read-only", action="store_true", help="neither remember nor forget")
    parser.add_argument("--pooler", action="store_true", help="the database is behind PgBouncer")
    return parser


async def _serve(
    given: argparse.Namespace, indexes: Sequence[DerivedIndex], embedder: Embedder | None
) -> None:
    url = _setting(os.environ, "MEMORY_DATABASE_URL")
    tenant = given.tenant or _setting(os.environ, "MEMORY_TENANT")
    pepper = _setting(os.environ, "MEMORY_SUBJECT_PEPPER", empty=True)
    store = PostgresStore(url, pooler=given.pooler)
    async with Memory(
        store, subject_pepper=pepper or None, indexes=indexes, embedder=embedder
    ) as memory:
        state = await memory.ready()
        if not state.ready:
            raise InstallError("; ".join(state.problems))
        bound = memory.for_tenant(tenant)
        server = memory_server(bound, subject_keys=given.subject, read_only=given.read_only)
        for handler in logging.getLogger().handlers:
            handler.addFilter(_content_free)
        # A client that goes cancels its calls again and again, while the pool closes connections.
        logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
        try:
            await server.run_stdio_async()
        except* BrokenPipeError:
            _logger.info("the client went before its answer came")


def _setting(environment: Mapping[str, str], name: str, *, empty: bool = False) -> str:
    value = environment.get(name)
    if value is None or not (value or empty):
        raise InvalidInputError(
            name, "must be set" + ("; an empty value means none" if empty else "")
        )
    return value
