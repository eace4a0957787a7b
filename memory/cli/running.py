"""What every command needs: settings from the environment, and an end with an exit code.

Nothing here prints a value: errors are the library's own, which hold none, and of anything
unforeseen only the class is shown.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

from memory.cli.codes import CHANGED, FOUND, INTERNAL, INTERRUPTED, OK, UNAVAILABLE, USAGE
from memory.cli.printing import say
from memory.errors import ConflictError, InvalidInputError, MemoryServiceError

__all__ = ["database_url", "finish", "pepper", "run", "until_stopped"]

T = TypeVar("T")


def database_url() -> str:
    """Return the URL from the environment: in an argument, every process list would show it."""
    url = os.environ.get("MEMORY_DATABASE_URL")
    if not url:
        raise InvalidInputError(
            "MEMORY_DATABASE_URL", "must hold the URL, as the role that the command needs"
        )
    return url


def pepper() -> str | None:
    """Return the subject pepper, if the environment has one."""
    return os.environ.get("MEMORY_SUBJECT_PEPPER") or None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or end the process with the exit code of what went wrong."""
    try:
        return asyncio.run(_ended_by_signals(work))
    except (typer.Exit, typer.Abort):
        raise
    except InvalidInputError as error:
        code, message = USAGE, str(error)
    except ConflictError as error:
        code, message = CHANGED, str(error)
    except MemoryServiceError as error:
        code, message = UNAVAILABLE, str(error)
    except BrokenPipeError:
        # Who reads has gone; so that Python does not flush into the pipe again at its end:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code, message = FOUND, "the output was closed before its end"
    except OSError as error:
        code, message = USAGE, f"a file cannot be used: {error.strerror or type(error).__name__}"
    except (KeyboardInterrupt, asyncio.CancelledError):
        code, message = INTERRUPTED, "interrupted: what was done is done, call it again"
    except Exception as error:
        code, message = INTERNAL, f"unforeseen: {type(error).__name__}"
    say(f"memory: {message}")
    raise typer.Exit(code)


async def _ended_by_signals(work: Coroutine[Any, Any, T]) -> T:
    """Have a signal that ends processes cancel instead, so that nothing half-written is left."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    for name in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, task.cancel)
    return await task


def finish(found: bool) -> None:
    """End with 1 where something was found, else with 0."""
    raise typer.Exit(FOUND if found else OK)


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run until it ends, or until SIGTERM or SIGINT cancels it, which is a way to end it."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
    finally:
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(name)
