"""Grading difficulty: how often a checkpoint solves each problem, and the levels 1 to 5 that follow.

    foresail data grade-difficulty CHECKPOINT --data FILE

writes difficulty.jsonl, which a recipe joins to its problems as `data.difficulty`. Rates are kept as they come
(measured.jsonl): the same command goes on where it was stopped or killed. Every sample's noise is keyed by seed,
problem and sample, so what was sampled before or beside it changes nothing but the last bits of its logits, and
with `batch_invariant` not even those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from foresail.data.problems.difficulty import find_levels
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import PromptedProblem, encode_problems
from foresail.evaluation.checkpoint import (
    check_context,
    choose_grader,
    longest,
    make_folder,
    open_checkpoint,
)
from foresail.evaluation.judged_groups import judged_groups
from foresail.evaluation.pass_rates import PassRates, digest, measure
from foresail.model.decoder import Decoder
from foresail.model.weights import checksum
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.records import RunStopped, Verdict
from foresail.rollout.groups import GroupSpec, specify_groups
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
    reward = choose_grader(grader)
    model, tokenizer = open_checkpoint(checkpoint, device=device, max_length=sampling.max_new_tokens)
    prompted = encode_problems(load_problems(problems), tokenizer, model.shape.max_context)
    check_context(longest(prompted), sampling.max_new_tokens, model.shape.max_context)
    make_folder(output)
    settings = {"weights": f"{checksum(model):016x}", "samples": num_samples, "seed": seed, "grader": grader}
    unset = {"thinking_budget", "thinking_end"} if sampling.thinking_budget is None else set()
    settings |= sampling.model_dump(mode="json", exclude=unset)  # as it is read back
    rates = PassRates(output, settings)
    missing = [entry for entry in prompted if rates.of(entry) is None]
    if len(missing) < len(prompted):
        note(f"{len(prompted) - len(missing)} of {len(prompted)} problems are measured already")
    if missing:
        group_spec = specify_groups(tokenizer, sampling, num_samples, seed=seed, step=DIFFICULTY_STEP)
        measure_all(
            model, tokenizer, missing, group_spec, reward, rates, batch_invariant=batch_invariant, note=note
        )
    graded = to_levels(prompted, rates)
    write_text(output / "difficulty.jsonl", "".join(json.dumps(vars(line)) + "\n" for line in graded))
    return graded


def measure_all(
    model: Decoder,
    tokenizer: Tokenizer,
    problems: Sequence[PromptedProblem],
    group_spec: GroupSpec,
    reward: Reward,
    rates: PassRates,
    *,
    batch_invariant: bool,
    note: Callable[[str], None],
) -> None:
    """Many groups under way at once, as in an evaluation; each is written down as its last verdict comes.

    A problem of which no verdict held is not: the next call tries it again.
    """
    prompts = {entry.problem.id: digest(entry) for entry in problems}
    failed: list[Verdict] = []
    groups = judged_groups(model, tokenizer, problems, group_spec, reward, batch_invariant=batch_invariant)
    for done, group in enumerate(groups, start=1):
        rate = measure(group, prompts[group.problem.id])
        if rate.judged:
            rates.add(rate)
        else:
            failed.append(group.verdicts[0])
        if done % max(1, len(problems) // 20) == 0:
            note(f"{done} of {len(problems)} problems")
    if len(failed) == len(problems):
        raise RunStopped(
            f"no verdict of {len(problems)} problems held; the first: {failed[0].status}: {failed[0].detail}. Mend "
            "the grader or the problems, and call again"
        )


def to_levels(problems: Sequence[PromptedProblem], rates: PassRates) -> list[GradedProblem]:
    found = [rates.of(entry) for entry in problems]
    levels = find_levels([rate.value if rate else None for rate in found])
    return [
        GradedProblem(
            id=entry.problem.id,
            pass_rate=rate.value if rate else None,
            right=rate.right if rate else 0,
            judged=rate.judged if rate else 0,
            mean_length=rate.mean_length if rate else None,
            level=level,
        )
        for entry, rate, level in zip(problems, found, levels, strict=True)
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
