"""Accuracy on held-out problems during training, set by set.

A set asks for one greedy answer a problem, or for several samples. Its metrics carry its name; without a name, the
data's sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from statistics import fmean

from foresail.data.mixtures.mixture import mix_problems
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.results import ProblemResult
from foresail.evaluation.run import Examiner, evaluate, ignore
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.tables.parts import Sampling
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import HeldOut, as_graded, reward_for
from foresail.records import Verdict
from foresail.rewards.grading import Grading
from foresail.rollout.fleet import Fleet
from foresail.rollout.stream import Stream, StreamKind


@dataclass(frozen=True, kw_only=True)
class HeldOutSet:
    """Problems, the recipe's settings of the set, and the examiner of its answers."""

    settings: HeldOut
    problems: list[PromptedProblem]
    examiner: Examiner

    @property
    def num_attempts(self) -> int:
        return len(self.problems) * (self.settings.samples or 1)

    def name_of(self, source: str) -> str:
        return self.settings.name or source


def load_held_out(
    recipe: RolloutStage, reader: Reader, gradings: Mapping[Reward, Grading]
) -> list[HeldOutSet]:
    sets = []
    for settings in recipe.eval:
        reward = reward_for(settings, recipe.reward)
        examiner = Examiner(tokenizer=reader.tokenizer, reward=reward, grading=gradings[reward])
        problems = mix_problems(
            [as_graded(settings, recipe.reward)], reader, recipe.max_prompt_tokens
        ).entries
        sets.append(HeldOutSet(settings=settings, problems=problems, examiner=examiner))
    check_names(sets)
    return sets


def check_names(sets: Sequence[HeldOutSet]) -> None:
    """No two sets may write one curve."""
    owner: dict[str, HeldOut] = {}
    for held_out in sets:
        for name in {held_out.name_of(entry.problem.source) for entry in held_out.problems}:
            if (other := owner.setdefault(name, held_out.settings)) is not held_out.settings:
                raise ValueError(
                    f"{other.source} and {held_out.settings.source} both have problems of {name}; give each "
                    "[[eval]] a name of its own"
                )


def held_out_accuracy(
    fleet: Fleet,
    sets: Sequence[HeldOutSet],
    sampling: Sampling,
    seed: int,
    *,
    stream: StreamKind = Stream,
    advance: Callable[[Future[Verdict]], None] = ignore,
) -> dict[str, float]:
    """{"val-core/gsm8k/acc/mean@1": 0.41, "val-core/aime/acc/mean@8": 0.03}, without what could not be judged.

    `advance` is called with every attempt that ends.
    """
    accuracies = {}
    for held_out in sets:
        num_samples = held_out.settings.samples
        results = evaluate(
            fleet,
            held_out.problems,
            held_out.examiner,
            sampling=sampling,
            num_samples=num_samples,
            seed=seed,
            greedy=num_samples == 0,
            stream=stream,
            advance=advance,
        )
        for name, values in scores_by_name(held_out, results).items():
            accuracies[f"val-core/{name}/mean@{num_samples or 1}"] = fmean(values)
    return accuracies


def scores_by_name(held_out: HeldOutSet, results: Sequence[ProblemResult]) -> dict[str, list[float]]:
    """{"gsm8k/acc": …}: each judged problem's share of right answers; "gsm8k/reward", its mean reward, for rewards
    with terms or functions. No "acc" where some scores do not mark answers right or wrong."""
    scores: dict[str, list[float]] = {}
    ungraded: set[str] = set()
    for result in results:
        attempts = result.samples if result.greedy is None else (result.greedy,)
        name = held_out.name_of(result.source)
        if judged := [float(attempt.correct) for attempt in attempts if not attempt.failed]:
            scores.setdefault(f"{name}/acc", []).append(fmean(judged))
        if rewards := [attempt.reward for attempt in attempts if attempt.reward is not None]:
            scores.setdefault(f"{name}/reward", []).append(fmean(rewards))
        if any(attempt.status == "scored" for attempt in attempts):
            ungraded.add(f"{name}/acc")
    return {name: values for name, values in scores.items() if name not in ungraded}
