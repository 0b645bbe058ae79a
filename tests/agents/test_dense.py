"""Search by meaning, with an embedder that counts meanings."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foresail.agents.tools.dense as dense
from foresail.agents.factory import open_factory
from foresail.agents.tools.corpus import CorpusPassage
from foresail.agents.tools.dense import DenseIndex, open_dense_embedder
from foresail.agents.tools.load_tool import load_tool
from foresail.agents.tools.search_server import SearchServer
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.tools import SearchTool

MEANINGS = [{"river", "stream", "water"}, {"town", "city", "capital"}, {"song", "anthem", "music"}]
PASSAGES = [
    CorpusPassage("Seine", "A stream of water."),
    CorpusPassage("Rouen", "A city on a stream."),
    CorpusPassage("Marseillaise", "An anthem."),
    CorpusPassage("Paris", "The capital."),
]


class Counts:
    """A vector of how often each meaning is named; two threads at once are an error, as with real tokenizers."""

    def __init__(self) -> None:
        self.busy = False

    languages: tuple[str, ...] = ()

    def embed(self, texts: Sequence[str]) -> Any:
        assert not self.busy
        self.busy = True
        words = [[word.strip(".,?!").lower() for word in text.split()] for text in texts]
        found = np.array([[sum(w in meaning for w in line) for meaning in MEANINGS] for line in words]) + 1e-3
        self.busy = False
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def index() -> DenseIndex:
    return DenseIndex(PASSAGES, Counts())


def titles(found: list[CorpusPassage]) -> list[str]:
    return [passage.title for passage in found]


def test_passages_are_found_by_meaning_without_a_word_in_common(index: DenseIndex) -> None:
    assert titles(index.find("which river?", 1)) == ["Seine"]
    assert titles(index.find("the town at the river", 2))[0] == "Rouen"
    every = titles(index.find("music", 9))
    assert every[0] == "Marseillaise" and len(every) == len(PASSAGES)


@given(st.text(st.characters()), st.integers(1, 20))
def test_any_query_is_answered(query: str, count: int) -> None:
    found = DenseIndex(PASSAGES, Counts()).find(query, count)
    assert len(found) == (min(count, len(PASSAGES)) if query.strip() else 0)


def test_half_a_character_is_no_reason_to_fail(index: DenseIndex) -> None:
    assert titles(index.find("river \ud800", 1)) == ["Seine"]


def test_many_threads_ask_one_after_the_other(index: DenseIndex) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: titles(index.find(["river", "music"][n % 2], 1)), range(200)))
    assert found == [["Seine"], ["Marseillaise"]] * 100


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(dense, "open_dense_embedder", lambda model="": Counts())
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps(passage._asdict()) + "\n" for passage in PASSAGES))
    return str(file)


def test_a_recipe_asks_for_it(corpus: str) -> None:
    search = SearchTool(kind="dense", passages=1)
    with open_factory(Environment(tools=("search",), corpus=corpus, search=search)) as factory:
        assert asyncio.run(factory.tools[0].call({"query": "town"})).text == "[1] Paris\nThe capital."


def test_a_search_server_serves_it(corpus: str) -> None:
    server = SearchServer(DenseIndex(PASSAGES, Counts()), port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tool = load_tool("search", url=f"http://127.0.0.1:{server.server_port}", passages=1)
    assert "Seine" in asyncio.run(tool.call({"query": "river"})).text
    server.shutdown()
    server.server_close()


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ValueError, match=r'pip install "foresail\[dense\]"'):
        open_dense_embedder()

    def refuse(folder: str, **_: Any) -> Any:
        raise OSError("no config.json")

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=refuse))
    with pytest.raises(ValueError, match=r"environment\.search: all-MiniLM is no folder"):
        open_dense_embedder("all-MiniLM")
    (tmp_path / "modules.json").touch()
    with pytest.raises(ValueError, match=r"is no sentence embedder: no config\.json"):
        open_dense_embedder(str(tmp_path))


@pytest.mark.parametrize(
    ("corpus", "table", "words"),
    [
        ("a.jsonl", 'model = "m"', 'set environment.search.kind = "dense"'),
        ("http://a", 'kind = "dense"', "whose kind of search is set when it is started"),
        ("a.jsonl", 'kind = "denser"', "must be one of bm25, dense"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, corpus: str, table: str, words: str) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(
        'stage = "rl"\nsteps = 1\ndata = { source = "d.jsonl" }\nmodel = { path = "m" }\n[environment]\n'
        f'tools = ["search"]\ncorpus = "{corpus}"\n[environment.search]\n{table}\n'
    )
    with pytest.raises(RecipeError, match=words):
        load_recipe(file)
