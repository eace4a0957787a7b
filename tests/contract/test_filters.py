from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

DAY = datetime(2026, 1, 10, tzinfo=UTC)


def texts(found):
    records = found if isinstance(found, list) else [hit.record for hit in found.hits]
    return sorted(record.text.split()[-1] for record in records)


async def everywhere(tenant, **filters):
    """Ask by words, by vector, by time and by listing: a filter means one thing."""
    answers = [
        texts(await tenant.recall(text="note", **filters)),
        texts(await tenant.recall(embedding=[1.0, 0.0], **filters)),
        texts(await tenant.recall(**filters)),
        texts(await tenant.records(**filters)),
    ]
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


async def note(tenant, name, **more):
    given = {"subject_keys": "p", "embedding": [1.0, 0.0], **more}
    return (await tenant.remember(text=f"note {name}", **given)).record


async def test_by_person_any_of_them(acme):
    await note(acme, "ann", subject_keys="customer:ann")
    await note(acme, "both", subject_keys=["customer:ann", "customer:bob"])
    await note(acme, "cy", subject_keys="customer:cy")
    assert await everywhere(acme, subject_keys="customer:ann") == ["ann", "both"]
    assert await everywhere(acme, subject_keys="customer:bob") == ["both"]
    assert await everywhere(acme, subject_keys=["customer:bob", "customer:cy"]) == ["both", "cy"]
    assert await everywhere(acme, subject_keys="customer:dan") == []


async def test_by_person_all_of_them(acme):
    await note(acme, "ann", subject_keys="customer:ann")
    both = await note(acme, "both", subject_keys=["customer:ann", "customer:bob"])
    await note(acme, "bob", subject_keys="customer:bob")
    await acme.derive(kind="summary", text="note sum", sources=both, embedding=[1.0, 0.0])
    pair = ["customer:bob", "customer:ann"]
    assert await everywhere(acme, subject_keys=pair) == ["ann", "bob", "both", "sum"]
    assert await everywhere(acme, subject_keys=pair, subject_match="all") == ["both", "sum"]
    twice = ["customer:ann", "customer:ann"]
    assert await everywhere(acme, subject_keys=twice, subject_match="all") == ["ann", "both", "sum"]
    more = [*pair, "customer:cy"]
    assert await everywhere(acme, subject_keys=more, subject_match="all") == []


async def test_superseded_versions_when_they_are_asked_for(acme):
    old = await note(acme, "old", record_key="k")
    await note(acme, "new", record_key="k", subject_keys="q")
    assert await everywhere(acme) == ["new"]
    assert await everywhere(acme, include_superseded=True) == ["new", "old"]
    assert await everywhere(acme, subject_keys="p") == []
    assert await everywhere(acme, subject_keys="p", include_superseded=True) == ["old"]
    (found,) = await acme.records(subject_keys="p", include_superseded=True)
    assert found.superseded_at is not None
    assert found.record_id == old.record_id


async def test_by_kind_and_origin(acme):
    episodic = await note(acme, "episodic")
    await note(acme, "profile", kind="profile")
    await acme.derive(kind="summary", text="note sum", sources=episodic, embedding=[1.0, 0.0])
    assert await everywhere(acme, kinds="profile") == ["profile"]
    assert await everywhere(acme, kinds=["profile", "summary"]) == ["profile", "sum"]
    assert await everywhere(acme, origins="derived") == ["sum"]
    assert await everywhere(acme, origins=["remembered"]) == ["episodic", "profile"]
    assert await everywhere(acme, origins=["remembered", "derived"], kinds="summary") == ["sum"]


async def test_by_time_since_inclusive_until_exclusive(acme):
    for n in range(4):
        await note(acme, str(n), occurred_at=DAY + timedelta(days=n))
    one, three = DAY + timedelta(days=1), DAY + timedelta(days=3)
    assert await everywhere(acme, since=one, until=three) == ["1", "2"]
    assert await everywhere(acme, since=three) == ["3"]
    assert await everywhere(acme, until=one) == ["0"]
    east = timezone(timedelta(hours=9))
    assert await everywhere(acme, since=one.astimezone(east), until=three) == ["1", "2"]


@pytest.mark.parametrize(
    ("held", "asked", "matches"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 0}, {"a": False}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}, True),
        ({"a": {"b": 1}}, {"b": 1}, False),
        ({"a": {"b": 1}}, {"a": {}}, True),
        ({"a": [1, 2, 3]}, {"a": [3, 1]}, True),
        ({"a": [1, 2]}, {"a": [1, 1, 2, 2]}, True),
        ({"a": [1, 2]}, {"a": [4]}, False),
        ({"a": [1, 2]}, {"a": []}, True),
        ({"a": [1, 2]}, {"a": 1}, False),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [[1, 2], 3]}, {"a": [[1]]}, True),
        ({"a": [[1, 2], 3]}, {"a": [1]}, False),
        ({"a": 10**20}, {"a": 1e20}, True),
        ({"a": 0.1}, {"a": 0.1}, True),
        ({"ключ": "é"}, {"ключ": "é"}, True),
    ],
)
async def test_by_metadata_as_jsonb_contains(acme, held, asked, matches):
    await note(acme, "held", metadata=held)
    await note(acme, "other", metadata={"unrelated": "x"})
    found = await everywhere(acme, metadata=asked)
    assert ("held" in found) is matches
    assert ("other" in found) is (asked == {})


async def test_filters_narrow_together(acme):
    await note(acme, "yes", kind="profile", metadata={"a": 1}, occurred_at=DAY)
    await note(acme, "kind", metadata={"a": 1}, occurred_at=DAY)
    await note(acme, "meta", kind="profile", occurred_at=DAY)
    await note(acme, "time", kind="profile", metadata={"a": 1})
    await note(acme, "who", kind="profile", metadata={"a": 1}, occurred_at=DAY, subject_keys="q")
    found = await everywhere(
        acme,
        kinds="profile",
        metadata={"a": 1},
        until=DAY + timedelta(days=1),
        subject_keys="p",
    )
    assert found == ["yes"]


async def test_a_filter_is_applied_before_the_limit(acme):
    for n in range(20):
        await note(acme, f"p{n}")
    rare = await note(acme, "rare", subject_keys="q", occurred_at=DAY)
    for asked in ({"text": "note"}, {"embedding": [1.0, 0.0]}, {}):
        found = await acme.recall(subject_keys="q", limit=1, **asked)
        assert [hit.record for hit in found.hits] == [rare]


async def test_a_listing_is_paged_newest_first(acme):
    stored = [await note(acme, str(n)) for n in range(7)]
    await note(acme, "other", subject_keys="q")
    pages, after = [], None
    while page := await acme.records(subject_keys="p", after=after, limit=3):
        pages.append(page)
        after = page[-1]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [record for page in pages for record in page] == stored[::-1]
    assert await acme.records(after=stored[0].record_id) == []
    assert await acme.records(subject_keys="p", after=str(stored[1].record_id)) == [stored[0]]
