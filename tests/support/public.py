"""The public names: what the reference lists, examples show and the types cover."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import memory
from memory import cli, integrations, ports

# Helpers of one integration, which nobody imports; and what needs an environment of its own, where
# .ci/adk runs its example.
_INTERNAL: Final = {
    "memory.integrations.google_adk",
    "memory.integrations.importing_rows",
    "memory.integrations.importing_writes",
    "memory.integrations.langgraph_erasing",
    "memory.integrations.langgraph_items",
    "memory.integrations.langgraph_reading",
    "memory.integrations.mcp_tools",
    "memory.integrations.openai_items",
    "memory.integrations.wordpiece",
}
# What is said elsewhere: the bound verbs are those of Memory, and what a store does for Memory is
# said once, of the protocol. The last two are for other modules of the package.
_ELSEWHERE: Final = re.compile(
    r"memory\.TenantMemory\.\w+"
    rf"|memory\.(InMemory|Postgres)Store\.({'|'.join(vars(ports.Store))})"
    r"|memory\.redaction\.PatternRedactor\.steps|memory\.ExportedRecord\.of"
)


def documented() -> dict[str, Any]:
    """Every public name that needs words of its own."""
    found = {**names(), **methods()}
    return {path: item for path, item in found.items() if not _ELSEWHERE.fullmatch(path)}


def names() -> dict[str, Any]:
    """Every public class, function and value, by the first path it is reached under."""
    found: dict[str, Any] = {}
    for module in _modules():
        for name in module.__all__:
            item = getattr(module, name)
            if isinstance(item, ModuleType) or any(item is other for other in found.values()):
                continue
            found[f"{module.__name__}.{name}"] = item
    return found


def methods() -> dict[str, Any]:
    """Every public method and property of those classes, inherited ones of ours included."""
    found: dict[str, Any] = {}
    for path, item in names().items():
        if not inspect.isclass(item):
            continue
        for name, member in inspect.getmembers(item):
            if not name.startswith("_") and _is_ours(member):
                found[f"{path}.{name}"] = member
    return found


def _is_ours(member: object) -> bool:
    function = member.fget if isinstance(member, property) else member
    where = str(getattr(function, "__module__", None))
    return inspect.isroutine(function) and where.startswith("memory.")


def _modules() -> Iterator[Any]:
    """The package, the modules that it names, and every integration."""
    waiting: list[ModuleType] = [memory]
    while waiting:
        module = waiting.pop(0)
        yield module
        members = [getattr(module, name) for name in module.__all__]
        waiting += [member for member in members if isinstance(member, ModuleType)]
    yield cli
    for found in pkgutil.iter_modules(integrations.__path__, "memory.integrations."):
        if found.name not in _INTERNAL:
            yield importlib.import_module(found.name)
