"""Calls of the MCP server's tools: those that answer, and those that are refused."""

from __future__ import annotations

import json
from typing import Any

from mcp import Client

ANN, BOB = "customer:ann", "customer:bob"


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    # For whoever reads the text it is the same.
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    [content] = answer.content
    return str(content.text)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {"text": "secret"}, "subject_keys"),
    ("remember", {"text": "secret", "subject_keys": []}, "subject_keys"),
    ("remember", {"text": "secret", "subject_keys": "secret"}, "subject_keys"),
    ("remember", {"text": "", "subject_keys": [ANN]}, "text"),
    ("remember", {"text": {"secret": 1}, "subject_keys": [ANN]}, "text"),
    ("remember", {"text": "secret\0", "subject_keys": [ANN]}, "text"),
    ("remember", {"text": "secret" * 20_000, "subject_keys": [ANN]}, "text"),
    ("remember", {"text": "t", "subject_keys": ["secret" * 400]}, "subject_keys.0"),
    ("remember", {"text": "t", "subject_keys": [ANN], "kind": "Secret!"}, "kind"),
    ("remember", {"text": "t", "subject_keys": [ANN], "metadata": ["secret"]}, "metadata"),
    ("remember", {"text": "t", "subject_keys": [ANN], "occurred_at": "secret"}, "occurred_at"),
    ("remember", {"text": "t", "subject_keys": [ANN], "occurred_at": "2026-01-01"}, "occurred_at"),
    ("remember", {"text": "t", "subject_keys": [ANN], "tenant_key": "secret"}, "nothing else"),
    ("remember", {"text": "t", "subject_keys": [ANN], "secret": "x"}, "nothing else"),
    ("recall", {"text": "secret"}, "subject_keys"),
    ("recall", {"subject_keys": [ANN], "limit": 1_001}, "limit"),
    ("recall", {"subject_keys": [ANN], "limit": "secret"}, "limit"),
    ("forget", {"subject_key": ANN}, "expect"),
    ("forget", {"subject_key": ANN, "expect": "secret"}, "expect"),
    ("forget", {"subject_key": ANN, "expect": "0" * 64}, "dry run"),
    ("forget", {"subject_key": ""}, "subject_key"),
    ("export", {"subject_key": ANN, "skip": -1}, "skip"),
    ("secret", {}, "no such tool"),
]
