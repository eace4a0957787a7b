"""What a host plugs in: refused at once where it cannot work, whatever its class where it can."""

from __future__ import annotations

import pytest

from memory import HashingEmbedder, InMemoryStore, InvalidInputError, Memory
from memory.redaction import default_redactor
from memory.service.events import LoggingSink


class Index:
    name = "index"

    async def purge(self, artefact_ids):
        return len(artefact_ids)


class Nameless:
    purge = Index.purge


@pytest.mark.parametrize(
    ("plugged", "message"),
    [
        ({"store": "postgresql://db"}, "store: must be a store; PostgresStore(url) makes one"),
        ({"store": Memory()}, "store: must be a store; PostgresStore(url) makes one"),
        ({"embedder": [1.0].copy}, "embedder: must have a method embed"),
        ({"redactor": str.upper}, "redactor: must have a method redact"),
        ({"events": print}, "events: must have a method publish"),
        ({"clock": 7}, "clock: must be callable"),
        ({"indexes": Index()}, "indexes: must be a sequence"),
        ({"indexes": [Index(), "index"]}, "indexes.1: must have a method purge"),
        ({"indexes": [Nameless()]}, "indexes.0.name: must be a string"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_plugged_in(plugged, message):
    with pytest.raises(InvalidInputError) as refused:
        Memory(**plugged)
    assert str(refused.value) == message


async def test_an_object_with_the_methods_fits_whatever_its_class():
    class Behind:
        """Hands every call on, as a host's wrapper does."""

        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

    memory = Memory(
        Behind(InMemoryStore()),
        embedder=Behind(HashingEmbedder(8)),
        redactor=Behind(default_redactor),
        indexes=(Behind(Index()),),
        events=Behind(LoggingSink()),
        subject_pepper="p",
    )
    told = await memory.remember("acme", text="x", subject_keys="p")
    await memory.register_artefact("acme", adapter="index", artefact_id="a", sources=told)
    assert (await memory.forget("acme", subject_key="p")).complete


async def test_an_embedder_that_is_not_async_is_refused_and_nothing_is_stored():
    class Sync:
        def embed(self, texts):
            return [[1.0] for _ in texts]

    class Async(Sync):
        async def embed(self, texts):
            return super().embed(texts)

    memory = Memory(embedder=Sync(), subject_pepper="p")
    with pytest.raises(InvalidInputError, match="embedder: must have an async method embed"):
        await memory.remember("acme", text="x", subject_keys="p")
    assert await memory.records("acme") == []
    memory = Memory(memory._store, embedder=Async(), subject_pepper="p")
    await memory.remember("acme", text="x", subject_keys="p")
    assert len(await memory.records("acme")) == 1
