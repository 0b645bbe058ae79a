"""Questions with the passages that answer them, and a corpus of others, from files.

HotpotQA's rows have both: context [[title, [sentence, …]], …] and supporting_facts [[title, number], …], or as
columns {"title": […], "sentences": […]} and {"title": […], "sent_id": […]}. Rows of other sets have a column
titles, of passages in a corpus, whose rows have title and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import log
from pathlib import Path
from typing import Any

from foresail.data.rows import Row, id_of, read_rows

WORD = re.compile(r"\w+")
NEAR = 40  # passages that a search would bring
COMMON = 0.1  # share of the passages from which a word says nothing


@dataclass(frozen=True, kw_only=True)
class Passage:
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """`gold` are the passages that answer it, in the order in which the row names them."""

    id: str
    text: str
    answer: str
    gold: tuple[Passage, ...]


@dataclass(frozen=True, kw_only=True)
class Library:
    questions: tuple[Question, ...]
    passages: tuple[Passage, ...]


def read_library(file: str, corpus: str | None) -> Library:
    passages = {} if corpus is None else read_passages(corpus)
    rows = [*read_rows(Path(file))]
    for row in rows:
        for title, text in context_of(row):
            passages.setdefault(title, Passage(title=title, text=text))
    questions = [read_question(row, number, file, passages) for number, row in enumerate(rows)]
    answerable = tuple(question for question in questions if question is not None)
    if not answerable:
        raise ValueError(
            f"{file} has no question whose passages are known; rows need question, answer, and context with "
            "supporting_facts, or titles of a corpus (corpus=FILE)"
        )
    return Library(questions=answerable, passages=tuple(passages.values()))


def read_passages(corpus: str) -> dict[str, Passage]:
    passages: dict[str, Passage] = {}
    for row in read_rows(Path(corpus)):
        title, text = row.columns.get("title"), row.columns.get("text")
        if not isinstance(title, str) or not isinstance(text, str):
            raise ValueError(f"{row.place}: a passage needs title and text")
        passages.setdefault(whole(title), Passage(title=whole(title), text=whole(text.strip())))
    return passages


def context_of(row: Row) -> list[tuple[str, str]]:
    """The passages that a row of HotpotQA brings."""
    context: Any = row.columns.get("context") or []
    try:
        if isinstance(context, dict):
            context = [*zip(context["title"], context["sentences"], strict=True)]
        read = [(title, "".join(sentences).strip()) for title, sentences in context]
    except (TypeError, ValueError, KeyError):
        read = [(None, "")]
    if not all(isinstance(title, str) for title, _ in read):
        raise ValueError(
            f"{row.place}: context must be a list of [title, [sentence, …]], or have columns title and sentences"
        )
    return [(whole(title), whole(text)) for title, text in read]


def titles_of(row: Row) -> list[str]:
    """Of the passages that answer the question."""
    facts: Any = row.columns.get("supporting_facts")
    try:
        if isinstance(facts, dict):
            named = [*facts["title"]]
        elif facts is not None:
            named = [fact[0] for fact in facts]
        else:
            named = [*(row.columns.get("titles") or [])]
    except (TypeError, LookupError):
        named = [None]
    if not all(isinstance(title, str) for title in named):
        raise ValueError(
            f"{row.place}: supporting_facts must be a list of [title, sentence], or titles a list of titles"
        )
    return [*dict.fromkeys(map(whole, named))]


def whole(text: str) -> str:
    """Halves of characters become question marks: no file could hold them."""
    return text.encode("utf-8", "replace").decode()


def read_question(row: Row, number: int, file: str, passages: dict[str, Passage]) -> Question | None:
    """None if one of its passages is unknown."""
    columns = row.columns
    text, answer = columns.get("question"), columns.get("answer")
    if not isinstance(text, str) or not isinstance(answer, str) or not text.strip() or not answer.strip():
        raise ValueError(f"{row.place}: a row needs question and answer, both text")
    titles = titles_of(row)
    if not titles or any(title not in passages for title in titles):
        return None
    gold = tuple(passages[title] for title in titles)
    return Question(
        id=id_of(row) or f"{Path(file).name}:{number}",
        text=whole(text),
        answer=whole(answer.strip()),
        gold=gold,
    )


class NearPassages:
    """Passages by the rare words that they share with a question: those a search would wrongly bring."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self.ranked: dict[str, list[Passage]] = {}
        self.postings: dict[str, list[int]] = {}
        for number, passage in enumerate(passages):
            for word in {*words(f"{passage.title} {passage.text}")}:
                self.postings.setdefault(word, []).append(number)

    def nearest(self, question: str) -> list[Passage]:
        if question not in self.ranked:
            self.ranked[question] = self.rank(question)
        return self.ranked[question]

    def rank(self, question: str) -> list[Passage]:
        scores: dict[int, float] = {}
        for word in sorted({*words(question)}):
            places = self.postings.get(word, [])
            if len(places) > COMMON * len(self.passages):
                continue
            weight = log(len(self.passages) / max(1, len(places)))
            for number in places:
                scores[number] = scores.get(number, 0.0) + weight
        ranked = nsmallest(NEAR, scores, key=lambda number: (-scores[number], number))
        return [self.passages[number] for number in ranked]


def words(text: str) -> Iterable[str]:
    return (word.lower() for word in WORD.findall(text))
