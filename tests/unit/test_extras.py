"""An integration whose extra is not installed says what to install."""

from __future__ import annotations

import importlib
import sys

import pytest

from memory import InstallError


@pytest.mark.parametrize(
    ("module", "extra", "needs"),
    [
        ("langgraph", "langgraph", "langgraph.store.base"),
        ("openai_agents", "openai-agents", "agents.items"),
        ("mcp_server", "mcp", "mcp.server"),
        ("google_adk", "google-adk", "google.adk.events.event"),
    ],
)
def test_without_its_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, needs: str
) -> None:
    monkeypatch.setitem(sys.modules, needs, None)
    monkeypatch.delitem(sys.modules, f"memory.integrations.{module}", raising=False)
    with pytest.raises(InstallError, match=rf"^needs: .*erasable-memory\[{extra}\]"):
        importlib.import_module(f"memory.integrations.{module}")
