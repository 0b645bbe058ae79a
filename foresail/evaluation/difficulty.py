"""Difficulty of problems: a checkpoint's pass rates, and levels 1 to 5 computed from them.

    foresail data grade-difficulty CHECKPOINT --data FILE

writes difficulty.jsonl, which a recipe joins to its problems as `data.difficulty`. Rates are written as they come
(`recorded_samples.py`): stopped or killed, the same command resumes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from foresail.data.problems.difficulty import find_levels
from foresail.evaluation.recorded_samples import ProblemRecord, record_samples
from foresail.recipe.tables import parts
from foresail.records import Group
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer

DIFFICULTY_STEP = -2  # a stream of noise apart from training (1, 2, …) and evaluation (-1)


@dataclass(frozen=True, kw_only=True)
class GradedProblem:
    """A line of difficulty.jsonl. Without a judged sample there is neither pass rate nor level."""

    id: str
    pass_rate: float | None
    right: int
    judged: int
    mean_length: float | None
    level: int | None


@dataclass(frozen=True, kw_only=True)
class MeasuredProblem(ProblemRecord):
    """A line of measured.jsonl."""

    mean_length: float  # tokens, over all samples


def grade_difficulty(
    checkpoint: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    num_samples: int,
    output: Path,
    grader: str = "math",
    seed: int = 0,
    device: str = "auto",
    batch_invariant: bool = False,
    note: Callable[[str], None] = print,
) -> list[GradedProblem]:
    """Every problem in the data's order; what `output` holds already is not sampled again."""
    measured = record_samples(
        checkpoint,
        problems,
        sampling,
        file=output / "measured.jsonl",
        kind=MeasuredProblem,
        describe=describe_lengths,
        step=DIFFICULTY_STEP,
        num_samples=num_samples,
        grader=grader,
        seed=seed,
        device=device,
        batch_invariant=batch_invariant,
        note=note,
    )
    graded = to_levels([record for _, record in measured])
    write_text(output / "difficulty.jsonl", "".join(json.dumps(vars(line)) + "\n" for line in graded))
    return graded


def describe_lengths(group: Group, tokenizer: Tokenizer) -> dict[str, float]:
    return {"mean_length": fmean(sample.num_response_tokens for sample in group.samples)}


def to_levels(measured: Sequence[MeasuredProblem]) -> list[GradedProblem]:
    levels = find_levels([record.pass_rate for record in measured])
    return [
        GradedProblem(
            id=record.id,
            pass_rate=record.pass_rate,
            right=record.right,
            judged=record.judged,
            mean_length=record.mean_length if record.judged else None,
            level=level,
        )
        for record, level in zip(measured, levels, strict=True)
    ]


def describe_levels(graded: Sequence[GradedProblem]) -> list[str]:
    """A line a level: how many problems, between which pass rates, how long their responses are."""
    lines = [f"{'level':<8}{'problems':>10}{'pass rate':>20}{'mean tokens':>14}"]
    for level in sorted({line.level for line in graded if line.level is not None}):
        of_level = [line for line in graded if line.level == level]
        rates = [line.pass_rate for line in of_level if line.pass_rate is not None]
        length = fmean(line.mean_length for line in of_level if line.mean_length is not None)
        between = f"{100 * max(rates):.1f} - {100 * min(rates):.1f} %"
        lines.append(f"{level:<8}{len(of_level):>10}{between:>20}{length:>14.1f}")
    always, never = (sum(line.pass_rate == rate for line in graded) for rate in (1.0, 0.0))
    unknown = sum(line.level is None for line in graded)
    lines.append(f"always solved {always}, never {never}" + (f", not gradable {unknown}" if unknown else ""))
    return lines
