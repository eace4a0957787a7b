"""The first and the last ``datetime`` are times like others; the last is many a host's "never"."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("moment", [FIRST, LAST], ids=["first", "last"])
async def test_a_record_of_the_end_of_time_is_read_as_it_was_written(acme, moment):
    own_id = uuid4()
    args = {"text": "Ann called", "subject_keys": "ann", "occurred_at": moment, "record_id": own_id}
    record = (await acme.remember(**args)).record
    await acme.remember(text="Ann called again", subject_keys="ann")
    assert await acme.get(record_id=own_id) == record
    assert (await acme.remember(**args)).record == record
    assert {hit.record.record_id for hit in (await acme.recall()).hits} > {own_id}
    assert record in await acme.history(record_key=record.record_key)
    assert record in await acme.records()


async def test_what_never_expires_is_found(acme):
    kept = await acme.remember(text="Ann called", subject_keys="ann", expires_at=LAST)
    assert await acme.get(record_id=kept.record) == kept.record
    assert [hit.record for hit in (await acme.recall(text="called")).hits] == [kept.record]
