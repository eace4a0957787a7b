from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from recalling import everywhere, records_of, ways

DAY = datetime(2026, 1, 10, tzinfo=UTC)


async def found(tenant, **filters):
    """Ask in every way: a filter means one thing."""
    records = await everywhere(tenant, "note", [1.0, 0.0], **filters)
    return sorted(record.text.split()[-1] for record in records)


async def note(tenant, name, **more):
    given = {"subject_keys": "p", "embedding": [1.0, 0.0], **more}
    return (await tenant.remember(text=f"note {name}", **given)).record


async def test_by_person_any_of_them(acme):
    await note(acme, "ann", subject_keys="customer:ann")
    await note(acme, "both", subject_keys=["customer:ann", "customer:bob"])
    await note(acme, "cy", subject_keys="customer:cy")
    assert await found(acme, subject_keys="customer:ann") == ["ann", "both"]
    assert await found(acme, subject_keys="customer:bob") == ["both"]
    assert await found(acme, subject_keys=["customer:bob", "customer:cy"]) == ["both", "cy"]
    assert await found(acme, subject_keys="customer:dan") == []


async def test_by_person_all_of_them(acme):
    await note(acme, "ann", subject_keys="customer:ann")
    both = await note(acme, "both", subject_keys=["customer:ann", "customer:bob"])
    await note(acme, "bob", subject_keys="customer:bob")
    await acme.derive(kind="summary", text="note sum", sources=both, embedding=[1.0, 0.0])
    pair = ["customer:bob", "customer:ann"]
    assert await found(acme, subject_keys=pair) == ["ann", "bob", "both", "sum"]
    assert await found(acme, subject_keys=pair, subject_match="all") == ["both", "sum"]
    twice = ["customer:ann", "customer:ann"]
    assert await found(acme, subject_keys=twice, subject_match="all") == ["ann", "both", "sum"]
    more = [*pair, "customer:cy"]
    assert await found(acme, subject_keys=more, subject_match="all") == []


async def test_derived_records_are_found_by_the_people_of_their_sources(acme):
    ann = await note(acme, "ann", subject_keys="customer:ann")
    bob = await note(acme, "bob", subject_keys="customer:bob")
    given = {"kind": "summary", "embedding": [1.0, 0.0]}
    both = (await acme.derive(text="note both", sources=[ann, bob], **given)).record
    deep = (await acme.derive(text="note deep", sources=both, **given)).record
    for person, name in (("customer:ann", "ann"), ("customer:bob", "bob")):
        assert await found(acme, subject_keys=person) == sorted([name, "both", "deep"])
        assert await found(acme, subject_keys=person, origins="derived") == ["both", "deep"]
    pair = {"subject_keys": ["customer:ann", "customer:bob"], "subject_match": "all"}
    assert await found(acme, **pair) == ["both", "deep"]
    await acme.relate(record_id=bob.record_id, subject_keys="customer:cy")
    assert await found(acme, subject_keys="customer:cy") == ["bob", "both", "deep"]
    assert deep.subject_keys == ("customer:ann", "customer:bob")


async def test_a_hit_carries_what_a_citation_needs(acme):
    source = await note(acme, "one", subject_keys="customer:ann", occurred_at=DAY)
    given = {"kind": "summary", "embedding": [1.0, 0.0], "record_key": "sum"}
    await acme.derive(text="note sum", sources=source, **given)
    made = (await acme.derive(text="note sum again", sources=source, **given)).record
    for asked in ways("note again", [1.0, 0.0]).values():
        answer = await acme.recall(origins="derived", **asked)
        (cited,) = records_of(answer)
        assert (cited.record_id, cited.record_key, cited.version) == (made.record_id, "sum", 2)
        assert (cited.origin, cited.sources) == ("derived", (source.record_id,))
        assert (cited.occurred_at, cited.subject_keys) == (made.occurred_at, ("customer:ann",))
        (told,) = [await acme.get(record_id=item) for item in cited.sources]
        assert (told, told.occurred_at) == (source, DAY)


async def test_what_has_expired_is_never_found_whatever_is_asked_for(memory_factory):
    now = DAY
    acme = memory_factory(clock=lambda: now).for_tenant("acme")
    await note(acme, "old", record_key="k", expires_at=DAY + timedelta(hours=1))
    await note(acme, "new", record_key="k", expires_at=DAY + timedelta(hours=2))
    assert await found(acme, include_superseded=True) == ["new", "old"]
    now += timedelta(hours=1)
    assert await found(acme, include_superseded=True) == ["new"]
    now += timedelta(hours=1)
    for filters in ({}, {"include_superseded": True}, {"subject_keys": "p"}):
        assert await found(acme, **filters) == []


async def test_ties_go_to_the_greater_id_in_every_way(acme):
    ids = [UUID(int=n) for n in (5, 1 << 127, 9, (1 << 127) + 1)]
    for record_id in ids:
        await note(acme, "same", record_id=record_id, occurred_at=DAY)
    for asked in ways("note same", [1.0, 0.0]).values():
        answer = await acme.recall(limit=3, **asked)
        assert [item.record_id for item in records_of(answer)] == sorted(ids, reverse=True)[:3]


async def test_a_least_score_cuts_every_ranking_where_it_says(acme):
    for n in range(9):
        words = " ".join(["note", *["seat", "window", "aisle"][: n % 4]])
        await acme.remember(text=words, subject_keys=f"p{n % 2}", embedding=[1.0, n / 5])
    asked_for = ways("note seat window aisle", [1.0, 0.0])
    del asked_for["recent"]  # has no scores
    for name, asked in asked_for.items():
        for filters in ({}, {"subject_keys": "p1"}):
            every = (await acme.recall(limit=100, **asked, **filters)).hits
            for least in {hit.score for hit in every}:
                reached = tuple(hit for hit in every if hit.score >= least)
                found = await acme.recall(limit=100, min_score=least, **asked, **filters)
                assert (name, found.hits) == (name, reached)
                first = await acme.recall(limit=2, min_score=least, **asked, **filters)
                assert (name, first.hits) == (name, reached[:2])
            above = every[0].score + 0.01
            nothing = await acme.recall(min_score=above, **asked, **filters)
            assert nothing.hits == ()
            assert "no record matches" in nothing.note


async def test_superseded_versions_when_they_are_asked_for(acme):
    old = await note(acme, "old", record_key="k")
    await note(acme, "new", record_key="k", subject_keys="q")
    assert await found(acme) == ["new"]
    assert await found(acme, include_superseded=True) == ["new", "old"]
    assert await found(acme, subject_keys="p") == []
    assert await found(acme, subject_keys="p", include_superseded=True) == ["old"]
    (hidden,) = await acme.records(subject_keys="p", include_superseded=True)
    assert hidden.superseded_at is not None
    assert hidden.record_id == old.record_id


async def test_by_kind_and_origin(acme):
    episodic = await note(acme, "episodic")
    await note(acme, "profile", kind="profile")
    await acme.derive(kind="summary", text="note sum", sources=episodic, embedding=[1.0, 0.0])
    assert await found(acme, kinds="profile") == ["profile"]
    assert await found(acme, kinds=["profile", "summary"]) == ["profile", "sum"]
    assert await found(acme, origins="derived") == ["sum"]
    assert await found(acme, origins=["remembered"]) == ["episodic", "profile"]
    assert await found(acme, origins=["remembered", "derived"], kinds="summary") == ["sum"]


async def test_by_time_since_inclusive_until_exclusive(acme):
    for n in range(4):
        await note(acme, str(n), occurred_at=DAY + timedelta(days=n))
    one, three = DAY + timedelta(days=1), DAY + timedelta(days=3)
    assert await found(acme, since=one, until=three) == ["1", "2"]
    assert await found(acme, since=three) == ["3"]
    assert await found(acme, until=one) == ["0"]
    east = timezone(timedelta(hours=9))
    assert await found(acme, since=one.astimezone(east), until=three) == ["1", "2"]


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
    names = await found(acme, metadata=asked)
    assert ("held" in names) is matches
    assert ("other" in names) is (asked == {})


async def test_filters_narrow_together(acme):
    await note(acme, "yes", kind="profile", metadata={"a": 1}, occurred_at=DAY)
    await note(acme, "kind", metadata={"a": 1}, occurred_at=DAY)
    await note(acme, "meta", kind="profile", occurred_at=DAY)
    await note(acme, "time", kind="profile", metadata={"a": 1})
    await note(acme, "who", kind="profile", metadata={"a": 1}, occurred_at=DAY, subject_keys="q")
    names = await found(
        acme,
        kinds="profile",
        metadata={"a": 1},
        until=DAY + timedelta(days=1),
        subject_keys="p",
    )
    assert names == ["yes"]


async def test_a_filter_is_applied_before_the_limit(acme):
    for n in range(20):
        await note(acme, f"p{n}")
    rare = await note(acme, "rare", subject_keys="q", occurred_at=DAY)
    for asked in ways("note", [1.0, 0.0]).values():
        answer = await acme.recall(subject_keys="q", limit=1, **asked)
        assert records_of(answer) == [rare]


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
