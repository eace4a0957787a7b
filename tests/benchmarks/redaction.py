# ruff: noqa: T201 - a report is printed
"""Throughput of redaction on one core, and what it masks in labelled conversations.

::

    python tests/benchmarks/redaction.py                      # throughput
    python tests/benchmarks/redaction.py dialogues.jsonl      # and a report on conversations

Where ``presidio-analyzer`` is installed, its pattern recognizers for the same kinds run on the same
texts in the same process. They are called one by one: the analyzer engine would load a model.
"""

from __future__ import annotations

import importlib
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from memory.redaction import checks, default_redactor, redact_fields

SAMPLE = (
    "She prefers calls after ten and asked for the contract to be renewed in March. "
    "The last visit went well, though the invoice was late again; they want a discount of 5 % "
    "or a longer warranty. Ask Priya about the Pune office before the meeting on Tuesday. "
)
SENTENCES = {
    "aadhaar": "my aadhaar is {}, please update it",
    "pan": "PAN {} is on file for the customer",
    "gstin": "billed to {} in Pune last week",
    "card": "paid with card {} yesterday",
    "phone": "Ramesh at {} disputed the invoice",
    "iban": "send it to IBAN {} by Friday",
    "ssn": "her social security number is {}",
    "order": "order number {} has not arrived",
}
# Presidio's pattern recognizers for the kinds that both know, but for e-mail: that one asks the
# network for a list of suffixes.
RECOGNIZERS = (
    "CreditCardRecognizer",
    "IbanRecognizer",
    "InAadhaarRecognizer",
    "InGstinRecognizer",
    "InPanRecognizer",
    "InPassportRecognizer",
    "InVoterRecognizer",
    "PhoneRecognizer",
    "UsBankRecognizer",
    "UsLicenseRecognizer",
    "UsPassportRecognizer",
    "UsSsnRecognizer",
)


def identifiers(kind: str, source: random.Random) -> str:
    """Return one identifier of the kind, written plainly."""

    def digits(count: int) -> str:
        return "".join(source.choice("0123456789") for _ in range(count))

    def until(make: Callable[[], str], valid: Callable[[str], bool]) -> str:
        return next(number for number in iter(make, "") if valid(number))

    pan = f"ABC{source.choice('PCHF')}K{source.randint(1000, 9999)}F"
    if kind == "aadhaar":
        return until(lambda: source.choice("23456789") + digits(11), checks.aadhaar)
    if kind == "gstin":
        return next(
            f"27{pan}1Z{char}"
            for char in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
            if checks.gstin(f"27{pan}1Z{char}")
        )
    if kind == "card":
        return until(lambda: "4" + digits(15), checks.luhn)
    if kind == "iban":
        return until(lambda: f"DE{digits(20)}", checks.iban)
    if kind == "ssn":
        return f"{source.randint(100, 665)}-{source.randint(10, 99)}-{source.randint(1000, 9999)}"
    return pan if kind == "pan" else source.choice("6789") + digits(9)


def texts() -> dict[str, list[str]]:
    """Return the texts to measure on: prose and dense identifiers, by the line and by 2 kB."""
    source = random.Random(3)  # noqa: S311 - the texts have to be the same in every run
    dense = [
        sentence.format(identifiers(kind, source))
        for _ in range(40)
        for kind, sentence in SENTENCES.items()
    ]
    source.shuffle(dense)
    prose = [line.strip() + "." for line in (SAMPLE * 30).split(".") if line.strip()]
    return {
        "prose, one sentence": prose,
        "prose, 2 kB": cut(" ".join(prose), 2_000),
        "dense, one sentence": dense,
        "dense, 2 kB": cut(". ".join(dense), 2_000),
    }


def cut(text: str, size: int) -> list[str]:
    """Return the text in pieces of one size."""
    return [text[at : at + size] for at in range(0, len(text) - size, size)]


def seconds(run: Callable[[str], object], samples: Iterable[str]) -> float:
    """Return the best time of five for all the texts."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        for sample in samples:
            run(sample)
        best = min(best, time.thread_time() - start)
    return best


def presidio() -> Callable[[str], object] | None:
    """Return Presidio's recognizers as one function; None where it is not installed."""
    try:
        module = importlib.import_module("presidio_analyzer.predefined_recognizers")
    except ImportError:
        return None
    logging.disable(logging.CRITICAL)
    recognizers = [getattr(module, name)() for name in RECOGNIZERS]

    def analyze(text: str) -> None:
        for recognizer in recognizers:
            recognizer.analyze(text, recognizer.supported_entities, None)

    return analyze


def throughput() -> None:
    """Print MB/s and microseconds a text, and how much faster than Presidio."""
    other = presidio()
    for name, samples in texts().items():
        size = sum(len(sample.encode()) for sample in samples)
        ours = seconds(default_redactor.redact, samples)
        line = f"{name:22} {size / ours / 1e6:6.2f} MB/s {ours / len(samples) * 1e6:8.0f} us/text"
        if other is not None:
            theirs = seconds(other, samples)
            line += f"   presidio {size / theirs / 1e6:6.3f} MB/s   {theirs / ours:5.1f} times"
        print(line)


def small_writes() -> None:
    """Print what redaction adds to a write of a few words: the text, and its metadata."""
    for name, metadata in (("no metadata", {}), ("two values", {"channel": "chat", "lang": "en"})):

        def run(text: str, metadata: Mapping[str, str] = metadata) -> None:
            redact_fields(default_redactor, text, metadata)

        samples = ["She prefers calls after ten"] * 1_000
        spent = seconds(run, samples) / len(samples)
        print(f"{'five words, ' + name:24} {spent * 1e6:6.1f} us")


def conversations(path: Path) -> None:
    """Print how many labelled phone numbers are masked, and every mask beside them."""
    turns = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found: Counter[bool] = Counter()
    others: list[str] = []
    for turn in turns:
        spans = [(span["start"], span["end"]) for span in turn["spans"] if is_phone(span["slot"])]
        masks = default_redactor.scan(turn["text"])
        found.update(any(m.start <= a and b <= m.end for m in masks) for a, b in spans)
        others += [
            f"{m.kind}: {turn['text']}" for m in masks if not overlaps(spans, m.start, m.end)
        ]
    print(f"{len(turns)} turns; labelled phone numbers masked: {found[True]}/{found.total()}")
    print(f"other masks: {len(others)}")
    for line in others:
        print(f"  {line}")


def is_phone(slot: str) -> bool:
    """Return whether a slot of the data set is a phone number."""
    return "phone" in slot


def overlaps(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Return whether one of the spans shares a character with start to end."""
    return any(first < end and start < last for first, last in spans)


if __name__ == "__main__":
    throughput()
    small_writes()
    for argument in sys.argv[1:]:
        conversations(Path(argument))
