"""Random histories against the model, the small form; histories.py is the long one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from histories import play, whole
from memory.stores.in_memory import erasing
from performing import Performing
from servers import Postgres
from stages import InPostgres, InProcess, Urls


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Indexes fail by the hundred, and each time a line is logged."""
    logging.disable(logging.WARNING)
    Performing.failures.clear()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def in_process() -> Iterator[None]:
    Performing.stage = InProcess()
    yield
    Performing.stage.runner.close()


def played(number: int, examples: int, length: int) -> list[str]:
    """What the histories of a seed failed of."""
    try:
        play(number, examples, length)
    except Exception as error:  # a failure that depends on the moment is told of as another
        return [*Performing.failures, repr(error)]
    return []


@pytest.mark.usefixtures("in_process")
def test_any_history_in_this_process_is_the_models() -> None:
    before = Performing.steps
    assert played(11, 20, 40) == []
    assert Performing.steps > before + 100


def test_any_history_in_the_database_is_the_models_torn_cut_and_cancelled(
    server: Postgres,
) -> None:
    before = Performing.steps
    with server.migrated() as database:
        urls = Urls(
            database.app_url, database.operator_url, database.owner_url, database.superuser_url
        )
        stage = InPostgres(urls)
        Performing.stage = stage
        try:
            assert played(12, 6, 40) == []
            assert whole(stage) == []
        finally:
            stage.runner.run(stage.close())
            stage.runner.close()
    assert Performing.steps > before + 30


def forgotten_debts(*_: Any) -> None:
    pass


@pytest.mark.usefixtures("in_process")
def test_a_store_that_forgets_what_indexes_owe_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(erasing, "_owe", forgotten_debts)
    assert played(13, 200, 40) != []


@pytest.mark.usefixtures("in_process")
def test_a_store_that_miscounts_in_its_evidence_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = erasing._counts
    monkeypatch.setattr(erasing, "_counts", lambda *given: replace(counts(*given), memories=0))
    assert played(14, 100, 30) != []
