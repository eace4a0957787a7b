"""The seams of the library: what a host plugs in, and the protocol both stores implement."""

from __future__ import annotations

from memory.commands import Draft, Filters, Found, Order, Query, Subject, Sweep
from memory.ports.plugs import DerivedIndex, Embedder, ErasureEvent, EventSink, Redactor
from memory.ports.store import Demand, Store

__all__ = [
    "Demand",
    "DerivedIndex",
    "Draft",
    "Embedder",
    "ErasureEvent",
    "EventSink",
    "Filters",
    "Found",
    "Order",
    "Query",
    "Redactor",
    "Store",
    "Subject",
    "Sweep",
]
