"""A judge on preference pairs: which answer it calls better, beside the one that people preferred.

    judge_pairs("pairs.jsonl", Path("out"), PairSettings(answerer=…, rubric="quality"))

    out/pairs.jsonl          {"pair": 17, "outcome": "first", "score": 0.9, "said": [0.93, 0.87]}
                             {"pair": 18, "failed": "no_json", "detail": "…"}
    out/figures.json         agreement with the preferred answers, consistency, position bias
    out/judge.answers.jsonl  what the model said: a stopped run goes on after it

The first answer of a pair is the preferred one. `by_levels`: each answer is rated alone by the rubric's levels, and
the higher rating decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from pydantic import Field

from foresail.curate.asking.asking import Asking
from foresail.curate.asking.cache import AnswerCache
from foresail.curate.judging.labelling import CACHE, check_plan
from foresail.data.corpus.documents import describe_file
from foresail.data.preferences.pairs import load_pairs
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.judge import JudgeForm
from foresail.recipe.tables.part import Part
from foresail.records import Message, PreferencePair
from foresail.rewards.judging.agreement import Agreement, agreement
from foresail.rewards.judging.judge import Comparison, Judge, Pair, Rating, Unjudged, settle
from foresail.rewards.judging.question import Judged, message_text
from foresail.rewards.judging.rubric import Rubric, load_rubric
from foresail.runlog.atomic import explained, write_text
from foresail.runlog.lock import lock_folder

ROWS, FIGURES = "pairs.jsonl", "figures.json"
Verdict = Comparison | Unjudged


class PairSettings(Part):
    answerer: Answerer = Field(description="who judges; another model needs another folder")
    rubric: str = Field("quality", description="a name, or a file of your own, NAME.toml")
    by_levels: bool = Field(False, description="rate each answer alone; the higher rating decides")
    form: JudgeForm = JudgeForm()
    limit: int | None = Field(None, gt=0, description="the first pairs only")
    batch: int = Field(64, ge=1, description="pairs that are asked about at once")


def judge_pairs(
    source: str, out: Path, settings: PairSettings, note: Callable[[int, int], None] = lambda done, all: None
) -> Agreement:
    rubric = load_rubric(settings.rubric)
    pairs = load_pairs(source, settings.limit).entries
    if not pairs:
        raise ValueError(f"{source} holds no usable pair")
    cache = AnswerCache(out)
    with explained(out), lock_folder(out):
        check_plan(
            out,
            {
                "pairs": [describe_file(Path(source)), settings.limit],
                "rubrics": [rubric.model_dump(mode="json"), settings.by_levels],
                "model": settings.answerer.answers_by(),
                "form": settings.form.model_dump(mode="json"),
            },
        )
        cache.open_piece(CACHE)
        judge = Judge(settings.form, Asking(settings.answerer, cache))
        verdicts: list[Verdict] = []
        waiting = iter(pairs)
        while batch := list(islice(waiting, settings.batch)):
            verdicts += compare_batch(batch, judge, rubric, by_levels=settings.by_levels)
            note(len(verdicts), len(pairs))
        cache.close()
        figures = agreement(
            verdicts, [cluster_of(pair) for pair in pairs], both_orders=not settings.by_levels
        )
        rows = [verdict_row(number, verdict) for number, verdict in enumerate(verdicts)]
        write_text(out / ROWS, "".join(json.dumps(row) + "\n" for row in rows))
        write_text(out / FIGURES, json.dumps(asdict(figures), indent=1) + "\n")
    return figures


def compare_batch(
    pairs: Sequence[PreferencePair], judge: Judge, rubric: Rubric, *, by_levels: bool
) -> list[Verdict]:
    if not by_levels:
        return judge.compare([as_pair(pair) for pair in pairs], rubric)
    judged = [
        Judged(prompt=pair.prompt, response=answer_text(answer))
        for pair in pairs
        for answer in (pair.chosen, pair.rejected)
    ]
    ratings = judge.rate(judged, [rubric])
    return [by_difference(*both) for both in zip(ratings[::2], ratings[1::2], strict=True)]


def as_pair(pair: PreferencePair) -> Pair:
    return Pair(prompt=pair.prompt, first=answer_text(pair.chosen), second=answer_text(pair.rejected))


def answer_text(messages: Sequence[Message]) -> str:
    """One message as it is; several with their roles."""
    if len(messages) == 1:
        return message_text(messages[0])
    return "\n\n".join(f"{message.role}: {message_text(message)}" for message in messages)


def by_difference(first: Rating | Unjudged, second: Rating | Unjudged) -> Verdict:
    """by_difference(0.9, 0.4) -> the first, with 0.75."""
    if isinstance(first, Unjudged):
        return first
    if isinstance(second, Unjudged):
        return second
    lead = round((1 + first.score - second.score) / 2, 6)
    return settle(lead, round(1 - lead, 6))


def cluster_of(pair: PreferencePair) -> str:
    return json.dumps([[message.role, message.content] for message in pair.prompt])


def verdict_row(number: int, verdict: Verdict) -> dict[str, object]:
    if isinstance(verdict, Unjudged):
        return {"pair": number, "failed": verdict.reason, "detail": verdict.detail}
    return {"pair": number, "outcome": verdict.outcome, "score": verdict.score, "said": [*verdict.said]}
