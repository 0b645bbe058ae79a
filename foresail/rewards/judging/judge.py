"""A judge: texts in, ratings and comparisons out; what it does not say is never a score.

    judge = Judge(form, answer)
    judge.rate([Judged(prompt=prompt, response="4")], [load_rubric("quality")])
    -> [Rating(labels={"quality": 7}, score=0.7)] or [Unjudged("no_json", "…")]
    judge.compare([Pair(prompt=prompt, first="4", second="5")], load_rubric("quality"))
    -> [Comparison(outcome="first", score=1.0)] or [Unjudged("refused", "…")]

Two answers are compared in both orders. Where the orders disagree, the outcome is `inconsistent`, which counts as a
tie. Equal questions are asked once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from foresail.chat.answering import Answer
from foresail.chat.endpoint import Refused
from foresail.recipe.tables.judge import JudgeForm
from foresail.records import Message
from foresail.rewards.judging.question import (
    TIE,
    Judged,
    Labels,
    PairQuestion,
    Question,
    RubricQuestion,
    pair_question,
    rubric_question,
)
from foresail.rewards.judging.reading import Unreadable
from foresail.rewards.judging.rubric import Rubric

Outcome = Literal["first", "second", "tie", "inconsistent"]
SIDES: dict[int, Outcome] = {1: "first", 0: "tie", -1: "second"}
AS_SCORE: dict[Outcome, float] = {"first": 1.0, "second": 0.0, "tie": 0.5, "inconsistent": 0.5}


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Why there is no verdict. `reason` is one word, to be counted; `answer` is what was said instead."""

    reason: str
    detail: str = ""
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class Rating:
    """`scores`: of rubrics with levels, each from 0 (lowest) to 1. `shown`: the share of the text that it saw."""

    labels: Labels
    scores: dict[str, float] = field(default_factory=dict)
    shown: float = 1.0

    @property
    def score(self) -> float:
        return sum(self.scores.values()) / len(self.scores)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two responses to one prompt."""

    prompt: tuple[Message, ...]
    first: str
    second: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """`score` is 1 where the first is better, 0 where the second is; `said`: of the first response in each order.

    Where probabilities are read, `score` is the mean probability that the first is better. `shown`: of the two
    shares that were seen the smaller one.
    """

    outcome: Outcome
    score: float
    said: tuple[float, float]
    shown: float = 1.0


class Judge:
    def __init__(self, form: JudgeForm, answer: Answer) -> None:
        self.form, self._answer = form, answer

    def rate(self, judged: Sequence[Judged], rubrics: Sequence[Rubric]) -> list[Rating | Unjudged]:
        """All rubrics are asked at once; where probabilities are read, one after the other."""
        if self.form.read == "probability":
            return [*map(combine_ratings, *(self._rate_by(judged, rubric) for rubric in rubrics))]
        questions = [rubric_question(one, rubrics, self.form) for one in judged]
        return [read_rating(*both) for both in zip(questions, self._ask(questions), strict=True)]

    def _rate_by(self, judged: Sequence[Judged], rubric: Rubric) -> list[Rating | Unjudged]:
        questions = [rubric_question(one, [rubric], self.form) for one in judged]
        return [read_probabilities(*both) for both in zip(questions, self._ask(questions), strict=True)]

    def compare(self, pairs: Sequence[Pair], rubric: Rubric) -> list[Comparison | Unjudged]:
        questions = []
        for pair in pairs:
            questions.append(pair_question(pair.prompt, pair.first, pair.second, rubric, self.form))
            questions.append(pair_question(pair.prompt, pair.second, pair.first, rubric, self.form))
        answers = self._ask(questions)
        read = read_shares if self.form.read == "probability" else read_words
        said = [read(*both) for both in zip(questions, answers, strict=True)]
        return [settle(*both) for both in zip(said[::2], said[1::2], strict=True)]

    def _ask(self, questions: Sequence[Question]) -> list[str | Refused]:
        """Equal questions are asked once."""
        distinct = {question.key: question for question in questions}
        if not distinct:
            return []
        messages = [question.messages for question in distinct.values()]
        if self.form.read == "probability":
            replies = self._answer(messages, [*distinct], choices=questions[0].choices)
        else:
            schemas = [question.schema for question in distinct.values()]
            replies = self._answer(messages, [*distinct], schemas=schemas)
        answers = dict(zip(distinct, replies, strict=True))
        return [answers[question.key] for question in questions]


# From answers to verdicts.


def unjudged(refused: Refused) -> Unjudged:
    return Unjudged("refused", refused.detail[:300])


def read_rating(question: RubricQuestion, answer: str | Refused) -> Rating | Unjudged:
    if isinstance(answer, Refused):
        return unjudged(answer)
    try:
        labels = question.read(answer)
    except Unreadable as error:
        return Unjudged(error.reason, str(error), answer[:1000])
    return Rating(labels=labels, scores=scores_of(labels, question.rubrics))


def scores_of(labels: Labels, rubrics: Sequence[Rubric]) -> dict[str, float]:
    return {rubric.name: rubric.share(labels[rubric.name]) for rubric in rubrics if not rubric.classes}


def read_probabilities(question: RubricQuestion, answer: str | Refused) -> Rating | Unjudged:
    """The likeliest label, and the mean of the levels by their probabilities as score."""
    if isinstance(answer, Refused):
        return unjudged(answer)
    (rubric,), shares = question.rubrics, json.loads(answer)
    likeliest = question.choices[max(range(len(shares)), key=shares.__getitem__)]
    if rubric.classes:
        return Rating(labels={rubric.name: likeliest})
    levels = [rubric.share(int(choice)) for choice in question.choices]
    mean = sum(level * share for level, share in zip(levels, shares, strict=True))
    return Rating(labels={rubric.name: int(likeliest)}, scores={rubric.name: round(mean, 6)})


def combine_ratings(*ratings: Rating | Unjudged) -> Rating | Unjudged:
    """One rating by several rubrics; without one of them there is none."""
    labels: Labels = {}
    scores: dict[str, float] = {}
    for rating in ratings:
        if isinstance(rating, Unjudged):
            return rating
        labels, scores = labels | rating.labels, scores | rating.scores
    return Rating(labels=labels, scores=scores)


Said = float | Unjudged  # that A is better


def read_words(question: PairQuestion, answer: str | Refused) -> Said:
    if isinstance(answer, Refused):
        return unjudged(answer)
    try:
        return {"A": 1.0, TIE: 0.5, "B": 0.0}[question.read(answer)]
    except Unreadable as error:
        return Unjudged(error.reason, str(error), answer[:1000])


def read_shares(question: PairQuestion, answer: str | Refused) -> Said:
    if isinstance(answer, Refused):
        return unjudged(answer)
    better, _, *tie = json.loads(answer)
    return round(better + sum(tie) / 2, 6)


def settle(first_as_a: Said, second_as_a: Said) -> Comparison | Unjudged:
    """From what was said of answer A in both orders: settle(1.0, 0.0) -> the first is better."""
    if isinstance(first_as_a, Unjudged):
        return first_as_a
    if isinstance(second_as_a, Unjudged):
        return second_as_a
    said = (first_as_a, round(1 - second_as_a, 6))
    sides = [SIDES[(value > 0.5) - (value < 0.5)] for value in said]
    outcome = sides[0] if sides[0] == sides[1] else "inconsistent"
    in_words = {*said} <= {0.0, 0.5, 1.0}
    score = AS_SCORE[outcome] if in_words else round(sum(said) / 2, 6)
    return Comparison(outcome=outcome, score=score, said=said)
