"""Ids of the caller's own beside keys of lines."""

from __future__ import annotations

from uuid import uuid4


async def test_an_id_that_is_the_key_of_a_line_continues_it(acme):
    own_id = uuid4()
    first = (
        await acme.remember(text="Ann called", subject_keys="ann", record_key=str(own_id))
    ).record
    second = (await acme.remember(text="Ann came", subject_keys="ann", record_id=own_id)).record
    assert (first.version, second.version) == (1, 2)
    line = await acme.history(record_key=str(own_id))
    assert [item.record_id for item in line] == [own_id, first.record_id]
    assert [item.record_id for item in await acme.records()] == [own_id]
    third = await acme.supersede(record_id=own_id, text="Ann left")
    assert third.record.version == 3
