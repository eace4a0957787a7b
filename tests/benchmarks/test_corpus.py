"""The corpus has the shares it says, with and without a file of dialogues, in every run."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    # Otherwise only what runs as a script finds its neighbours in this folder.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("corpus")


def test_words_stand_in_as_many_records_as_said(corpus: ModuleType) -> None:
    made = corpus.Corpus()
    texts = [set(made.text().split()) for _ in range(3_000)]
    held = Counter(word for text in texts for word in text)
    shares = [held[word] / len(texts) for word in made.words[:5]]
    assert shares == pytest.approx([0.5, 0.35, 0.28, 0.24, 0.22], abs=0.05)
    assert sum(map(len, texts)) / len(texts) == pytest.approx(20, abs=1)
    assert len(held) > 10_000


def test_questions_hold_common_words_as_said(corpus: ModuleType) -> None:
    made = corpus.Corpus()
    common = set(made.words[:3])
    natural = [question.split() for question in made.natural(40)]
    assert {len(question) for question in natural} == {8}
    assert [common.isdisjoint(question) for question in natural] == [False, True] * 20
    for question in made.common(20):
        assert set(question.split()) <= set(made.words[:10])


def test_a_seed_makes_the_same_corpus_and_a_file_gives_the_words(
    corpus: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "dialogues.jsonl"
    lines = ["the table by the door", "the door", "a table for the four of us"]
    file.write_text("\n".join(json.dumps({"text": line}) for line in lines))
    one, same, other = (
        list(corpus.Corpus(seed=seed, dialogues=file, dimensions=4).items(5, vectors=3))
        for seed in (1, 1, 2)
    )
    assert one == same
    assert [item.text for item in one] != [item.text for item in other]
    assert corpus.Corpus(dialogues=file).words[0] == "the"
    assert [item.embedding is None for item in one] == [False] * 3 + [True] * 2
