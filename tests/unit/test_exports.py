"""The public names: complete, sorted, importable."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import memory
from memory import errors, ports, types

# The adapter's framework has an environment of its own, where .ci/adk imports it.
ELSEWHERE = ("memory.migrations", "memory.integrations.google_adk")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(memory.__path__, "memory.")
    if not module.name.startswith(ELSEWHERE)
]
# Types of the Store protocol are for those who write a store, under memory.ports.
FOR_STORES = {"Demand", "Draft", "Filters", "Found", "Order", "Query", "Store", "Subject", "Sweep"}


def test_public_names_are_sorted_and_there():
    assert memory.__all__ == sorted(memory.__all__)
    assert len(set(memory.__all__)) == len(memory.__all__)
    for name in memory.__all__:
        assert getattr(memory, name) is not None


def test_every_error_result_and_port_is_public():
    wanted = {*errors.__all__, *types.__all__, *ports.__all__} - FOR_STORES
    assert wanted <= set(memory.__all__)


def test_no_public_class_hides_a_builtin():
    assert not set(memory.__all__) & set(dir(__builtins__))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_names_what_it_offers(name):
    module = importlib.import_module(name)
    offered = getattr(module, "__all__", [])
    assert offered == sorted(offered)
    for item in offered:
        assert hasattr(module, item)


def test_every_public_class_and_method_is_documented():
    for name in memory.__all__:
        item = getattr(memory, name)
        if not inspect.isclass(item):
            continue
        assert inspect.getdoc(item), name
        for method, function in inspect.getmembers(item, inspect.isfunction):
            if not method.startswith("_"):
                assert inspect.getdoc(function), f"{name}.{method}"
