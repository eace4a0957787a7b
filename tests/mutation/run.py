"""Mutants of the library and of the database's rules: which do the tests let live?

    python tests/mutation/run.py [--only NAME ...] [--all] [--seed N] [--list] [--scale X]

Wants the extra ``mutation`` beside ``dev``. Python: seeded samples of the mutants that cosmic-ray
makes, one at each of so many places. SQL: a seeded half of the edits in ``rules_*.py``, each in a
fresh clone of a migrated database. ``--all`` tries every mutant and every edit. A name is that of a
part of the library, of a migration or of a function. Prints a table, and every survivor; the exit
code is 1 if one lives that ``survivors.py`` does not explain.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import random
import re
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Otherwise only pytest knows these folders.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2]))

import parts
import rules_of_access
import rules_of_erasing
import rules_of_locks
import rules_of_writing
import sources
from edits import Edit, apply
from forked import (
    Collected,
    Instead,
    Limits,
    imported_anew,
    outcome,
    planted,
    prepared,
    server_for_all,
)
from reached import Reached, Watch
from servers import Postgres
from survivors import EXPLAINED

# Loaded once, here, and not in every child.
EDITS = [
    *rules_of_writing.EDITS,
    *rules_of_erasing.EDITS,
    *rules_of_locks.EDITS,
    *rules_of_access.EDITS,
]
# Watching costs more than running.
WATCHED = Limits(cpu=600)
LOADED = "alembic asyncpg hypothesis pgvector psycopg pytest_asyncio pytest_timeout sqlalchemy"


@dataclass
class Score:
    """What became of the mutants of one part."""

    name: str
    possible: int
    outcomes: Counter[str] = field(default_factory=Counter)
    survivors: list[str] = field(default_factory=list)

    def note(self, outcome: str, mutant: object, log: Path) -> None:
        self.outcomes[outcome] += 1
        failed = re.findall(r"(?:FAILED|ERROR) tests/(\S+)", log.read_text())
        print(f"  {outcome:8} {mutant}  [{''.join(failed[:1])}]", flush=True)
        if outcome == "survived":
            self.survivors.append(str(mutant))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    for name in LOADED.split():
        importlib.import_module(name)
    python = [part for part in parts.PARTS if _asked(part.name, options.only)]
    rules = _some([edit for edit in EDITS if _asked(str(edit), options.only)], options)
    if options.list:
        for part in python:
            for mutant in sources.sampled(part, options.seed, _size(part, options)):
                print(mutant)
        for edit in rules:
            print(edit)
        return 0
    scores: list[Score] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, contextlib.ExitStack() as stack:
        log = Path(folder) / "log"
        server = None
        if rules or any(part.database for part in python):
            server = stack.enter_context(server_for_all())
        for part in python:
            with prepared(server) if part.database and server else contextlib.nullcontext():
                scores.append(_python(part, options, log))
        if rules and server is not None:
            scores += _rules(rules, log, server)
    return _report(scores)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], help="parts, or words of edits")
    parser.add_argument("--all", action="store_true", help="every mutant, not a sample: for hours")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of the samples' sizes")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    return parser


def _asked(name: str, only: Sequence[str]) -> bool:
    return not only or any(word in name for word in only)


def _some(rules: list[Edit], options: argparse.Namespace) -> list[Edit]:
    if options.all:
        return rules
    size = round(len(rules) * min(1.0, options.scale / 2))
    return random.Random(f"{options.seed} SQL").sample(rules, size)  # noqa: S311 - no secret


def _size(part: parts.Part, options: argparse.Namespace) -> int | None:
    return None if options.all else max(1, round(part.sample * options.scale))


def _python(part: parts.Part, options: argparse.Namespace, log: Path) -> Score:
    score = Score(part.name, sum(len(sources.mutants(path)) for path in part.paths))
    print(f"{part.name}: {score.possible} mutants", flush=True)
    again: list[tuple[sources.Mutant, Instead]] = []

    def work(tests: Collected) -> None:
        reached = _reached(part, tests, log)
        for mutant in sources.sampled(part, options.seed, _size(part, options)):
            instead = Instead(mutant.module, mutant.path, mutant.source())
            places = instead.places()
            found = outcome(planted(tests.named(reached.by(places)), instead), log=log)
            if found == "survived" and reached.computed(places):
                again.append((mutant, instead))
            else:
                score.note(found, mutant, log)

    Collected(part.tests, work)
    for mutant, instead in again:
        score.note(outcome(imported_anew(part.tests, instead), log=log), mutant, log)
    return score


def _reached(part: parts.Part, tests: Collected, log: Path) -> Reached:
    """Run all tests without a mutant, and see what they call."""
    collecting, running = log.with_name("collecting"), log.with_name("running")
    early, watch = Watch(), Watch()
    collected = imported_anew([*part.tests, "--collect-only"])
    _unharmed(outcome(early.over(collected, collecting), log=log, limits=WATCHED), log)
    _unharmed(outcome(watch.over(tests.every(watch), running), log=log, limits=WATCHED), log)
    return Reached.read(collecting, running)


def _rules(chosen: Sequence[Edit], log: Path, server: Postgres) -> list[Score]:
    scores = {
        stem: Score(stem, sum(edit.stem == stem for edit in EDITS))
        for stem in sorted({edit.stem for edit in chosen})
    }

    def work(tests: Collected) -> None:
        for edit in chosen:
            with prepared(server) as database:
                apply(edit, database)
                scores[edit.stem].note(outcome(tests.within(edit.paths), log=log), edit, log)

    every = sorted({path for edit in chosen for path in edit.paths})
    Collected([*every, *parts.POSTGRES], work)
    return list(scores.values())


def _unharmed(outcome: str, log: Path) -> None:
    if outcome != "survived":
        raise SystemExit(f"without a mutant: {outcome}\n{log.read_text()[-4000:]}")


def _report(scores: Sequence[Score]) -> int:
    print(f"\n{'part':24}{'possible':>9}{'tried':>7}{'killed':>8}{'hung':>6}{'survived':>10}")
    for score in scores:
        count = score.outcomes
        print(
            f"{score.name:24}{score.possible:9}{count.total():7}{count['killed']:8}"
            f"{count['hung']:6}{count['survived']:10}"
        )
    unexplained = 0
    for survivor in (survivor for score in scores for survivor in score.survivors):
        why = next((why for known, why in EXPLAINED.items() if known in survivor), None)
        unexplained += why is None
        print(f"survived: {survivor}\n    {why or 'UNEXPLAINED'}")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"CPU seconds of the tests: {sum(u.ru_utime + u.ru_stime for u in used):.0f}")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
