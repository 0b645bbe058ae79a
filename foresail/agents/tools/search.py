"""The tool `search`: BM25 search over passages (`dense.py` searches by embeddings).

    index = Index(read_corpus("wiki.jsonl.gz"))
    index.find("capital of France", 3) -> [CorpusPassage("Paris", …), …]

Needs the package bm25s (pip install "foresail[agents]").
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from foresail.agents.tools.corpus import CorpusPassage, read_corpus
from foresail.agents.tools.dense import load_dense_index
from foresail.agents.tools.tool import Tool, tool_of

LONGEST_QUERY = 2000  # characters that are used
MAX_PASSAGES = 20


class Index:
    """A BM25 index shared by many threads."""

    def __init__(self, passages: Sequence[CorpusPassage], *, stopwords: str = "en") -> None:
        self.bm25s = load_bm25s()
        self.passages = passages
        self.stopwords = stopwords
        texts = [f"{passage.title} {passage.text}" for passage in passages]
        self.ranking = self.bm25s.BM25()
        self.ranking.index(
            self.bm25s.tokenize(texts, stopwords=stopwords, show_progress=False), show_progress=False
        )

    def find(self, query: str, count: int) -> list[CorpusPassage]:
        """At most `count` passages that share a word with the query, the best first."""
        words = self.bm25s.tokenize(
            [query[:LONGEST_QUERY]], stopwords=self.stopwords, return_ids=False, show_progress=False
        )
        if not words[0]:
            return []
        limit = min(count, len(self.passages))
        numbers, scores = self.ranking.retrieve(words, k=limit, show_progress=False)
        ranked = sorted(zip(-scores[0], numbers[0], strict=True))
        return [self.passages[int(number)] for score, number in ranked if score < 0]


def load_bm25s() -> Any:
    try:
        return importlib.import_module("bm25s")
    except ImportError:
        raise ValueError('search needs the package bm25s; pip install "foresail[agents]"') from None


@cache
def load_index(path: str) -> Index:
    """The index, loaded once in a process."""
    return Index(read_corpus(path))


def show(passages: Sequence[CorpusPassage]) -> str:
    """[1] Paris
    Paris is the capital of France.
    """
    if not passages:
        return "no passage has these words; try others"
    return "\n\n".join(
        f"[{number}] {passage.title}\n{passage.text}" for number, passage in enumerate(passages, 1)
    )


class Finder(Protocol):
    """A search index, BM25 or dense."""

    @property
    def passages(self) -> Sequence[CorpusPassage]: ...

    def find(self, query: str, count: int) -> list[CorpusPassage]: ...


def open_index(corpus: str, kind: str = "bm25", model: str = "") -> Finder:
    """The index of a corpus, loaded once in a process."""
    if kind == "dense":
        return load_dense_index(corpus, model)
    if model:
        raise ValueError("a model is for search of the kind dense")
    return load_index(corpus)


def search_tool(
    *, corpus: str = "", url: str = "", passages: int = 3, kind: str = "bm25", model: str = ""
) -> Tool:
    """The tool `search` over a corpus file or a search server; it returns `passages` passages."""
    if bool(corpus) == bool(url):
        raise ValueError("search needs a corpus file or the url of a search server, one of them")
    if not 1 <= passages <= MAX_PASSAGES:
        raise ValueError(f"passages must be from 1 to {MAX_PASSAGES}, not {passages}")
    if corpus:
        find = open_index(corpus, kind, model).find
    else:
        from foresail.agents.tools.search_client import SearchClient

        find = SearchClient(url).find

    def search(query: str) -> str:
        """Search for passages about something.

        query: words to look for, such as a name
        """
        return show(find(query, passages))

    return tool_of(search)
