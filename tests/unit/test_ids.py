from __future__ import annotations

import threading
import time
from uuid import RFC_4122

from memory import ids
from memory.ids import uuid7


def test_an_id_is_a_version_7_uuid_of_this_millisecond():
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= made.int >> 80 <= after + 1


def test_ids_rise_within_a_millisecond():
    made = [uuid7() for _ in range(20_000)]
    assert made == sorted(made, key=lambda item: item.bytes)
    assert len(set(made)) == len(made)


def test_ids_rise_when_the_clock_steps_back(monkeypatch):
    first = uuid7()
    monkeypatch.setattr(ids.time, "time_ns", lambda: 1)
    assert uuid7() > first


def test_ids_of_many_threads_differ():
    made: list[object] = []

    def work() -> None:
        made.extend([uuid7() for _ in range(2_000)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8_000
