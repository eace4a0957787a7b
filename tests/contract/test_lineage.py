"""Lineage: what an erasure would take, what that was made from, and pictures without content."""

from __future__ import annotations

import re

import pytest

from memory import InvalidInputError, UnknownRecordError
from memory.ids import uuid7


async def furnish(acme):
    """Ann's two memories, Bob's one, a summary of each pair and a digest of all; by name."""
    named = {}
    for name, people in (("ann", "ann"), ("both", ["ann", "cy"]), ("bob", "bob")):
        told = await acme.remember(text=f"secret {name}", subject_keys=people)
        named[name] = told.record
    for name, sources in (
        ("of ann", ["ann", "both"]),
        ("of bob", ["bob"]),
        ("digest", ["of ann", "of bob"]),
    ):
        made = await acme.derive(
            kind="summary", text=f"secret {name}", sources=[named[s] for s in sources]
        )
        named[name] = made.record
    return named


def shown(graph, named):
    """The nodes and edges by name, and which would be erased."""
    names = {record.record_id: name for name, record in named.items()}
    return (
        [names[node.record_id] for node in graph.nodes],
        {(names[source], names[made]) for source, made in graph.edges},
        {names[node.record_id] for node in graph.nodes if node.erased},
    )


async def test_the_graph_of_a_person_is_what_goes_and_what_it_was_made_from(acme, bystander):
    named = await furnish(acme)
    graph = await acme.lineage(subject_key="ann")
    plan = await acme.forget(subject_key="ann", dry_run=True)
    nodes, edges, erased = shown(graph, named)
    assert sorted(nodes[:2]) == ["ann", "both"]
    assert nodes[2:4] == ["of ann", "digest"]
    assert sorted(nodes[4:]) == ["bob", "of bob"]
    assert edges == {
        ("ann", "of ann"),
        ("both", "of ann"),
        ("bob", "of bob"),
        ("of ann", "digest"),
        ("of bob", "digest"),
    }
    assert erased == {"ann", "both", "of ann", "digest"}
    assert (graph.records, graph.erased) == (6, plan.counts.records)
    assert graph.closure == plan.closure
    assert graph.bystander_keys == plan.bystander_keys == ("bob", "cy")
    roots = {node.record_id for node in graph.nodes if node.root}
    assert roots == {named["ann"].record_id, named["both"].record_id}


async def test_the_graph_of_a_record_goes_up_to_its_sources_and_down(acme, bystander):
    named = await furnish(acme)
    graph = await acme.lineage(record_id=named["of bob"])
    nodes, _, erased = shown(graph, named)
    assert set(nodes) == set(named)
    assert nodes[:2] == ["of bob", "digest"]
    assert erased == {"of bob", "digest"}
    assert graph.bystander_keys == ("ann", "cy")
    leaf = await acme.lineage(record_id=named["bob"].record_id)
    assert shown(leaf, named)[2] == {"bob", "of bob", "digest"}


async def test_a_node_tells_what_a_record_is_and_not_what_it_says(acme):
    await acme.remember(text="secret", subject_keys="ann", record_key="k", kind="profile")
    told = await acme.remember(
        text="secret", subject_keys=["ann", "bob"], record_key="k", kind="profile"
    )
    await acme.register_artefact(adapter="index", artefact_id="a", sources=told)
    old, new = sorted((await acme.lineage(subject_key="ann")).nodes, key=lambda n: n.version)
    assert (old.superseded, old.people, old.artefacts) == (True, 1, 0)
    assert (new.superseded, new.people, new.artefacts) == (False, 2, 1)
    assert (new.origin, new.kind, new.version, new.held) == ("remembered", "profile", 2, False)


async def test_a_large_graph_is_cut_and_says_so(acme):
    told = await acme.remember_many(
        items=[{"text": f"n{n}", "subject_keys": "ann"} for n in range(30)]
    )
    await acme.derive(kind="summary", text="all", sources=[one.record for one in told])
    graph = await acme.lineage(subject_key="ann", limit=10)
    assert (len(graph.nodes), graph.records, graph.erased) == (10, 31, 31)
    assert all(node.root for node in graph.nodes)
    assert "31 of 31 records would be erased; the 10 nearest are drawn" in graph.svg()
    whole = await acme.lineage(subject_key="ann")
    assert (len(whole.nodes), len(whole.edges)) == (31, 30)


async def test_drawings_show_labels_that_were_given_and_no_text(acme):
    named = await furnish(acme)
    graph = await acme.lineage(subject_key="ann")
    for picture in (graph.svg(), graph.mermaid(), graph._repr_html_(), repr(graph)):
        assert "secret" not in picture
    for picture in (graph.svg(), graph.mermaid()):
        assert "4 of 6 records would be erased" in picture
        assert "bob, cy" in picture.replace("#44;", ",")
    assert "bob" not in repr(graph)
    labelled = graph.svg(labels={named["ann"].record_id: "<i>Ann's</i> own"})
    assert "&lt;i&gt;Ann&#x27;s&lt;/i&gt; own" in labelled
    assert graph._repr_html_().startswith("<div")


async def test_a_long_label_is_whole_for_the_pointer_and_keeps_the_count_of_artefacts(acme):
    told = await acme.remember(text="x", subject_keys=["ann", "bob"])
    await acme.register_artefact(adapter="index", artefact_id="one", sources=told)
    graph = await acme.lineage(subject_key="ann")
    label = "what the two of them agreed about the account of the house"
    drawn = graph.svg(labels={told.record.record_id: label})
    assert f"<title>{label}, {told.record.record_id}, remembered, 2 people, 1 artefacts" in drawn
    assert re.search(r">what the two of them agreed[a-z ]*… \+1</text>", drawn)
    assert "2 people +1</text>" in graph.svg()
    assert "… #43;1" in graph.mermaid(labels={told.record.record_id: label})


async def test_a_flowchart_shows_its_legend_where_a_renderer_shows_it(acme):
    await acme.remember(text="x", subject_keys="ann")
    chart = (await acme.lineage(subject_key="ann")).mermaid()
    assert "%%" not in chart
    assert 'notes["1 of 1 records would be erased<br/>' in chart
    assert '"would be erased"]:::s0' in chart


async def test_somebody_nothing_is_held_about_has_an_empty_graph(acme, bystander):
    graph = await acme.lineage(subject_key="stranger")
    assert (graph.nodes, graph.edges, graph.records, graph.erased) == ((), (), 0, 0)
    assert "0 of 0 records would be erased" in graph.svg()


async def test_tenants_have_graphs_apart(memory):
    told = await memory.remember("acme", text="x", subject_keys="ann")
    await memory.remember("globex", text="x", subject_keys="ann")
    assert (await memory.lineage("acme", subject_key="ann")).records == 1
    with pytest.raises(UnknownRecordError):
        await memory.lineage("globex", record_id=told.record)


async def test_it_is_of_one_person_or_one_record(acme):
    for named in ({}, {"subject_key": "ann", "record_id": uuid7()}):
        with pytest.raises(InvalidInputError, match="subject_key"):
            await acme.lineage(**named)
    with pytest.raises(InvalidInputError, match="limit"):
        await acme.lineage(subject_key="ann", limit=1001)
    with pytest.raises(UnknownRecordError):
        await acme.lineage(record_id=uuid7())


async def test_what_a_hold_keeps_is_drawn_as_held_and_stays(acme):
    named = await furnish(acme)
    alone = (await acme.derive(kind="summary", text="x", sources=named["ann"])).record
    named["alone"] = alone
    await acme.hold(subject_key="bob")
    graph = await acme.lineage(subject_key="ann")
    plan = await acme.forget(subject_key="ann", dry_run=True)
    # The digest is Bob's too, and all that leads to it stays.
    assert shown(graph, named)[2] == {"alone"}
    assert graph.erased == plan.counts.records == 1
    held = {node.record_id for node in graph.nodes if node.held}
    assert held == {named[name].record_id for name in ("digest", "bob", "of bob")}
    assert "under a legal hold" in graph.svg()
    assert (await acme.lineage(subject_key="bob")).erased == 0
