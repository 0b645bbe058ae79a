r"""The gold check: can the grader read the answers of a file, and do the worked solutions agree with them?

    foresail data check-answers train.jsonl

Every answer is graded against itself, as `\boxed{answer}`, against itself written otherwise, against wrong answers,
and against the final answer of its own solution where the file has solutions (`maths/gold/trials.py`). An answer
that fails the first check can never be rewarded; one that fails the last is mislabelled, or needs a rule that the
grader lacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foresail.data.problems.problems import ABSENT, ANSWER_KEYS, choose_key, look_up, to_answer
from foresail.data.problems.solutions import SOLUTION_KEYS, find_solution
from foresail.data.rows import Row, read_rows
from foresail.maths.extract import Accept
from foresail.maths.gold.trials import REASONS, Against, Trial, gold_trials, is_suspicious
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.grading import Grading
from foresail.rewards.tally import one_line, share, tally
from foresail.runlog.atomic import write_text


@dataclass(frozen=True, kw_only=True)
class GoldVerdict:
    """One check of one answer. `unparsable` against a solution means that the solution states no final answer."""

    place: str
    against: Against
    answer: str
    verdict: Verdict
    suspicious: bool


def check_answers(
    path: Path, *, answer_key: str | None = None, solution_key: str | None = None, workers: int | None = None
) -> list[GoldVerdict]:
    """All checks of every row, in file order."""
    rows = list(read_rows(path))
    answer_key = answer_key or choose_key(rows[0], ANSWER_KEYS, "answer")
    if solution_key is None:
        solution_key = next(
            (key for key in SOLUTION_KEYS if reach(rows[0].columns, key, ABSENT) is not ABSENT), None
        )
    # A solution ends in a box; "so the answer is as desired" in the midst of it is no answer. GSM8K's end in ####.
    accept: Accept = "stated" if solution_key is None else "boxed"
    with open_grading(Reward(grader="math", accept=accept, workers=workers)) as grading:
        pending = [check_row(row, answer_key, solution_key, grading) for row in rows]
        return [
            gold_verdict(row.place, answer, trial, future.result())
            for row, (answer, checks) in zip(rows, pending, strict=True)
            for trial, future in checks
        ]


def gold_verdict(place: str, answer: str, trial: Trial, verdict: Verdict) -> GoldVerdict:
    return GoldVerdict(
        place=place,
        against=trial.against,
        answer=answer,
        verdict=verdict,
        suspicious=is_suspicious(trial, verdict),
    )


def check_row(
    row: Row, answer_key: str, solution_key: str | None, grading: Grading
) -> tuple[str, list[tuple[Trial, Any]]]:
    value = look_up(row, answer_key, "answer")
    answer = to_answer(value)
    problem = Problem(id=row.place, prompt=(), answer=answer)
    if solution_key is not None:
        look_up(row, solution_key, "solution")
    solution = find_solution(row.columns, value, solution_key)
    return answer, [
        (trial, grading.submit(problem, single_turn(trial.response)))
        for trial in gold_trials(answer, solution=solution)
    ]


def describe_gold(checks: Sequence[GoldVerdict], *, show: int) -> Iterator[str]:
    """Rates of all checks, then the first `show` answers that something is wrong with."""
    for against in REASONS:
        if against == "a wrong answer":
            accepted = sum(check.suspicious for check in checks if check.against == against)
            tried = sum(check.against == against for check in checks)
            yield f"wrong answers: {accepted:,} of {tried:,} called right"
            continue
        verdicts = [check.verdict for check in checks if check.against == against]
        if against == "another form" and not verdicts:
            continue
        stated = [verdict for verdict in verdicts if against == "itself" or verdict.status != "unparsable"]
        if not stated:
            yield f"final answers against {against}: none of {len(verdicts):,} solutions states one"
            continue
        right = sum(verdict.status == "correct" for verdict in stated)
        rate = f"{share(right, len(stated))} correct ({right:,} of {len(stated):,})"
        left_out = (
            f"; {len(verdicts) - len(stated):,} solutions state none" if len(stated) < len(verdicts) else ""
        )
        yield f"final answers against {against}: {rate}{left_out}"
        yield from tally(stated)
    suspicious = [check for check in checks if check.suspicious]
    for check in suspicious[:show]:
        verdict = check.verdict
        finding = f"{verdict.status} against {check.against}: {check.answer[:60]!r}; {verdict.detail}"
        yield one_line(f"{check.place}: {finding}")
    if len(suspicious) > show:
        yield f"and {len(suspicious) - show:,} more"


def write_suspicious(path: Path, checks: Sequence[GoldVerdict]) -> None:
    """Every answer that something is wrong with, one line each."""
    rows = (json.dumps(asdict(check), ensure_ascii=False) for check in checks if check.suspicious)
    write_text(path, "".join(one_line(row) + "\n" for row in rows))
