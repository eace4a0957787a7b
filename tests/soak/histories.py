"""The long form of the machine, a command: one seed after another until the time is up.

    python tests/soak/histories.py --store postgres --minutes 15 --seed 1

Reports steps, seeds and every failure found; ends with 1 if there was one. On PostgreSQL it starts
a server of its own, which the histories restart, and checks all of it at the end of each seed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import HypothesisException
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import make_url

import memory
import paths  # noqa: F401 - before what is in tests/support
from crashes import Crashable, crashable
from machine import Histories
from performing import Performing
from stages import InPostgres, InProcess, Urls
from world import PEPPER


def urls_of(superuser_url: str) -> Urls:
    """The URLs of an embedded server's roles."""
    roles = ("memory_app", "memory_operator", "memory_owner", "postgres")
    return Urls(*(make_url(superuser_url).set(username=role).render_as_string() for role in roles))


@contextlib.contextmanager
def stage(store: str) -> Iterator[InProcess | InPostgres]:
    if store == "in-memory":
        yield InProcess()
        return
    with crashable() as server:
        place = InPostgres(
            urls_of(server.superuser_url), lambda immediately: again(server, immediately)
        )
        try:
            yield place
        finally:
            place.runner.run(place.close())


def again(server: Crashable, immediately: bool) -> None:
    if immediately:
        server.kill()
    else:
        server.stop()
    server.start()


def play(number: int, examples: int, length: int, *, shrink: bool = False) -> None:
    """Play some histories of a seed; failures are kept by the machine, those of a moment too."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    options = settings(
        max_examples=examples, stateful_step_count=length, deadline=None, database=None,
        phases=phases, print_blob=False, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    seed(number)(Histories)
    run_state_machine_as_test(Histories, settings=options)


def whole(place: InProcess | InPostgres) -> list[str]:
    """What memory.check finds in all tenants of all histories; nothing without a database."""
    if isinstance(place, InProcess):
        return []
    report = place.runner.run(memory.check(place.urls.owner, subject_pepper=PEPPER))
    return [f"{fault.code}: {fault.count}" for fault in report.faults if fault.severity == "error"]


def unproven(place: InProcess | InPostgres) -> list[str]:
    """The properties of the installation that no longer hold."""
    if isinstance(place, InProcess):
        return []
    properties = place.runner.run(memory.verify_install(place.urls.superuser))
    return [check.property for check in properties if not check.ok]


def main() -> int:
    parser = argparse.ArgumentParser(description="Random histories against a model")
    parser.add_argument("--store", choices=["in-memory", "postgres"], default="postgres")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=8, help="histories of each seed")
    parser.add_argument("--length", type=int, default=60, help="the most steps of a history")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    number, found = given.seed, []
    with stage(given.store) as place:
        Performing.stage, started = place, time.monotonic()
        while time.monotonic() < started + given.minutes * 60:
            try:
                play(number, given.examples, given.length)
            except (Exception, HypothesisException) as error:
                failures: list[Any] = Performing.failures[:1] or [repr(error)]
                found.append({"seed": number, "failure": failures[0]})
                sys.stderr.write(f"seed {number}: {failures[0]}\n")
                Performing.failures.clear()
            faults = whole(place) + unproven(place)
            if faults:
                found.append({"seed": number, "faults": faults})
                sys.stderr.write(f"seed {number}: {faults}\n")
            number += 1
        seconds = time.monotonic() - started
    report = {
        "store": given.store,
        "seconds": round(seconds),
        "seeds": [given.seed, number - 1],
        "histories": Performing.histories,
        "steps": Performing.steps,
        "failures": len(found),
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
