"""What a repr may show of a dataclass: codes, names from code, counts, hashes, positions."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import memory
from memory import Finding, redaction

# Fields that can hold text and are shown. A new one is listed here when it can hold nothing that a
# user wrote about anybody, and declared with repr=False otherwise.
SHOWN = {
    # codes and hashes
    *("kind", "kinds", "code", "closure", "digest", "expect", "hash", "narrow", "people"),
    *("previous", "subject_hash", "subject_hashes", "examples", "narrowed"),
    # names that come from code: adapters, models, indexes, tables, columns, files, URLs, versions
    *("adapter", "adapters", "outstanding", "embedding_model", "model", "encoding", "file"),
    *("extension", "index", "indexes", "lock", "name", "server_version", "table"),
    *(
        "pgvector_version",
        "url",
        "owner_url",
        "operator_url",
        "superuser_url",
        "data_directory",
        "target",
        "action",
    ),
    *(
        "key",
        "columns",
        "values",
        "tenant",
        "example",
        "wrong",
        "plain",
        "unreadable",
        "last_error",
    ),
    # words of the library's own, and expressions of its statements
    *("detail", "how", "note", "problems", "property", "remedy"),
    *("most", "gain", "final", "least"),
    # positions, numbers and times
    *("erasure_id", "occurred_at", "skipped", "strategy"),
    *("next", "record_id", "score", "min_score", "neighbours", "seconds", "waited"),
    *("reindex_seconds", "vacuum_seconds"),
}
CAN_HOLD_TEXT = ("str", "bytes", "Any", "object", "Mapping", "dict", "array", "float")


def dataclasses_of_the_package() -> Iterator[type]:
    seen = set()
    for module in pkgutil.walk_packages(memory.__path__, "memory."):
        if module.name.endswith("__main__") or module.name.startswith("memory.migrations"):
            continue
        if module.name == "memory.integrations.google_adk":
            # Its framework has an environment of its own (docs/agents.md); it declares none.
            file = Path(memory.__file__).with_name("integrations") / "google_adk.py"
            assert "dataclass" not in file.read_text(encoding="utf-8")
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value) and value not in seen:
                seen.add(value)
                yield value


def test_every_field_that_a_repr_shows_and_can_hold_text_is_declared() -> None:
    found = list(dataclasses_of_the_package())
    assert len(found) > 60
    undeclared = [
        f"{kind.__module__}.{kind.__name__}.{field.name}"
        for kind in found
        if "__repr__" in vars(kind) and vars(kind)["__dataclass_params__"].repr
        for field in dataclasses.fields(kind)
        if field.repr and any(word in str(field.type) for word in CAN_HOLD_TEXT)
        if field.name not in SHOWN
    ]
    assert undeclared == []


def test_a_finding_shows_neither_the_digits_it_keeps_nor_the_key_it_stood_at() -> None:
    _, (finding,) = redaction.default_redactor.redact("call 9876543210")
    assert finding.replacement == "[PHONE:****3210]"
    told = dataclasses.replace(finding, path="metadata.phone.dana's mobile")
    assert isinstance(told, Finding)
    assert repr(told) == "Finding(kind='phone_in', start=5, end=15)"
