"""Grades a file of responses, for `foresail grade FILE`: verdicts, counts and the report.

A row has a response and an answer under one of the usual names. Where it also says what the verdict should be
(`expected`, `is_correct`, `correct` or `label`: true or false), agreement is reported, and each disagreement.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foresail.data.files import excerpt
from foresail.data.problems.problems import choose_key, look_up, to_answer
from foresail.data.rows import Row, read_rows
from foresail.recipe.tables.inputs import SUFFIXES, reach
from foresail.recipe.tables.reward import Reward
from foresail.records import FAILURES, Problem, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.tally import one_line, share, tally
from foresail.rollout.answering.answerer import open_answerer
from foresail.runlog.atomic import write_text

RESPONSE_KEYS = ("response", "completion", "prediction", "pred", "output", "solution")
ANSWER_KEYS = ("answer", "gold", "ground_truth", "reward_model.ground_truth", "target")
LABEL_KEYS = ("expected", "is_correct", "correct", "label")


@dataclass(frozen=True, kw_only=True)
class GradedRow:
    """A row's verdict, and the label in the row, or None."""

    place: str
    answer: str
    verdict: Verdict
    expected: bool | None

    @property
    def comparable(self) -> bool:
        return self.expected is not None and self.verdict.status not in FAILURES

    @property
    def disagrees(self) -> bool:
        return self.comparable and self.expected != (self.verdict.status == "correct")


@dataclass(frozen=True, kw_only=True)
class GradedFile:
    """All rows in file order, and how long the verdicts took."""

    rows: list[GradedRow]
    seconds: float


def grade_file(
    source: str, settings: Reward, *, response_key: str | None = None, answer_key: str | None = None
) -> GradedFile:
    if not source.endswith(SUFFIXES):
        raise ValueError(
            f"{excerpt(source)!r} is none of {', '.join(SUFFIXES)}; to grade it as a response, "
            "give its answer after it"
        )
    rows = list(read_rows(Path(source)))
    response_key = response_key or choose_key(rows[0], RESPONSE_KEYS, "response")
    answer_key = answer_key or choose_key(rows[0], ANSWER_KEYS, "answer")
    responses = [read_response(row, response_key) for row in rows]
    answers = [to_answer(look_up(row, answer_key, "answer")) for row in rows]
    with open_grading(settings, open_answer=open_answerer) as grading:
        began = time.perf_counter()
        futures = [
            grading.submit(
                Problem(id=row.place, prompt=(), answer=answer, extra=row.columns), single_turn(response)
            )
            for row, response, answer in zip(rows, responses, answers, strict=True)
        ]
        verdicts = [future.result() for future in futures]
        seconds = time.perf_counter() - began
    graded = [
        GradedRow(place=row.place, answer=answer, verdict=verdict, expected=read_label(row, answer_key))
        for row, answer, verdict in zip(rows, answers, verdicts, strict=True)
    ]
    return GradedFile(rows=graded, seconds=seconds)


def read_response(row: Row, key: str) -> str:
    value = look_up(row, key, "response")
    if not isinstance(value, str):
        raise ValueError(f"{row.place}: the response must be text, found {excerpt(value)}; correct this row")
    return value


def read_label(row: Row, answer_key: str) -> bool | None:
    """A label true, false, 1 or 0; other values are no labels."""
    values: list[Any] = [reach(row.columns, key) for key in LABEL_KEYS if key != answer_key]
    return next((bool(value) for value in values if isinstance(value, int | float) and value in (0, 1)), None)


def describe_file(graded: GradedFile, *, show: int) -> Iterator[str]:
    """The summary: statuses, speed, agreement, and the first `show` disagreements."""
    rows = graded.rows
    yield f"{len(rows):,} verdicts, {len(rows) / max(graded.seconds, 1e-9):,.0f} a second"
    yield from tally(row.verdict for row in rows)
    compared = [row for row in rows if row.comparable]
    if not compared:
        return
    wrong = [row for row in compared if row.disagrees]
    right = len(compared) - len(wrong)
    yield f"agreement with the labels: {share(right, len(compared))} ({right:,} of {len(compared):,})"
    for row in wrong[:show]:
        label = "correct" if row.expected else "not correct"
        yield one_line(f"  {row.place}: labelled {label}, {row.verdict.status}: {row.verdict.detail}")
    if len(wrong) > show:
        yield f"  and {len(wrong) - show:,} more"


def write_verdicts(path: Path, rows: Sequence[GradedRow]) -> None:
    """One line a row, in file order."""
    lines = (
        {"place": row.place, **asdict(row.verdict), "answer": row.answer, "expected": row.expected}
        for row in rows
    )
    write_text(path, "".join(one_line(json.dumps(line, ensure_ascii=False)) + "\n" for line in lines))
