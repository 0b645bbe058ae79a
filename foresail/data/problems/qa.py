"""Question answering over documents, such as HotpotQA and 2WikiMultihopQA: answers, evidence, corpora.

Their files load as problems (`source = "hotpotqa/qa.jsonl.gz"`: columns `question` and `answer`); here their other
columns are read. The grader is `qa`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.data.rows import read_rows
from foresail.records import Problem

# Columns that hold further right answers. A list in the answer's own column is one of alternatives, too.
ALIAS_KEYS = ("answer", "aliases", "answer_aliases", "answers", "golden_answers", "possible_answers")
# Within them, as SQuAD, TriviaQA and files for Search-R1 have it.
INNER_KEYS = ("value", "text", "aliases", "target")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A document to search: a row {"title": …, "text": …} of a corpus."""

    title: str
    text: str


def accepted_answers(problem: Problem) -> tuple[str, ...]:
    """Every answer that counts as right, the problem's own first; lists in the usual columns are alternatives."""
    columns = [problem.extra.get(key) for key in ALIAS_KEYS]
    reward_model = problem.extra.get("reward_model")
    columns.append(reward_model.get("ground_truth") if isinstance(reward_model, dict) else None)
    own_answer = [] if any(is_made_of(problem.answer, column) for column in columns) else [problem.answer]
    all_texts = (text for texts in (own_answer, *map(texts_in, columns)) for text in texts)
    return tuple(dict.fromkeys(text for text in all_texts if text.strip()))


def is_made_of(answer: str, column: Any) -> bool:
    """Whether the answer is the column's list as one text, "Paris, City of Paris" or JSON: none of its items."""
    texts = texts_in(column)
    if isinstance(column, str) or not texts or answer in texts:
        return False
    return answer == ", ".join(texts) or answer.startswith(("{", "["))


def texts_in(value: Any) -> list[str]:
    """texts_in("Paris") -> ["Paris"]; texts_in({"text": ["Paris", "City of Paris"]}) -> both; 7 has none."""
    if isinstance(value, dict):
        return [text for key in INNER_KEYS for text in texts_in(value.get(key))]
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, str)]
    return [value] if isinstance(value, str) else []


def evidence_titles(problem: Problem) -> tuple[str, ...]:
    """Titles of the documents that hold the answer: HotpotQA's supporting facts, 2wiki's `titles`."""
    facts = problem.extra.get("supporting_facts") or ()
    if isinstance(facts, dict):  # as the Hub has it: columns of titles and sentence numbers
        return tuple(dict.fromkeys(facts.get("title", ())))
    return tuple(dict.fromkeys([*(title for title, _ in facts), *texts_in(problem.extra.get("titles"))]))


def context_passages(problem: Problem) -> list[Passage]:
    """The documents that came with a HotpotQA question, the right ones among distractors; none for other files."""
    context = problem.extra.get("context") or ()
    if isinstance(context, dict):
        context = list(zip(context.get("title", ()), context.get("sentences", ()), strict=True))
    if isinstance(context, str):
        return []
    return [Passage(title=title, text="".join(sentences)) for title, sentences in context]


def read_corpus(path: Path) -> Iterator[Passage]:
    """The rows of a corpus, lazily; each needs a title and a text."""
    for row in read_rows(path):
        title, text = row.columns.get("title"), row.columns.get("text")
        if not isinstance(title, str) or not isinstance(text, str):
            raise ValueError(
                f"{row.place}: a passage needs the columns title and text, as texts; correct this row"
            )
        yield Passage(title=title, text=text)
