"""Evaluation of a checkpoint on held-out problems, from Python."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foresail.api.given import GivenFiles
from foresail.api.keywords import Keywords, check_keywords, folder_of
from foresail.api.result import Records, Result
from foresail.api.rewards import Rewards, name_rewards
from foresail.recipe.tables.parts import Problems, Sampling
from foresail.recipe.tables.reward import Reward

if TYPE_CHECKING:
    from foresail.evaluation.evaluator import Evaluator
    from foresail.evaluation.target import Target

OWN = ("samples", "reward", "grader", "seed", "device", "output")


class Evaluation:
    """`figures` by name, with their intervals; `records`, one dict a problem with all attempts at it."""

    def __init__(self, results: list[Any]) -> None:
        from foresail.evaluation.results import summarise

        self.results = results
        self.figures: dict[str, Any] = summarise(results)

    @property
    def records(self) -> Records:
        from foresail.evaluation.results import to_json

        return Records(json.loads(json.dumps(result, default=to_json)) for result in self.results)

    def show(self) -> None:
        from rich.console import Console

        from foresail.evaluation.results import figures_table

        Console().print(figures_table(self.results))


@contextmanager
def open_evaluator(target: Target, sampling: Sampling, *, device: str) -> Iterator[Evaluator]:
    """The target's model and environment, open for any number of sets and modes."""
    from foresail.agents.build import open_episodes
    from foresail.check.grading import refuse_broken
    from foresail.evaluation.evaluator import Evaluator

    with (
        open_episodes(target.environment) as episodes,
        Evaluator(
            target.checkpoint,
            max_new_tokens=sampling.max_new_tokens,
            device=device,
            template_options=target.template_options,
            episodes=episodes,
            prompt_tokens=target.prompt_tokens,
            try_grading=refuse_broken,
        ) as evaluator,
    ):
        yield evaluator


def evaluate(
    model: str | Path | Result,
    data: Any = None,
    *,
    samples: int | None = None,
    reward: Rewards | None = None,
    grader: str | None = None,
    seed: int = 0,
    device: str = "auto",
    output: str | Path | None = None,
    sampling: dict[str, Any] | None = None,
    **problems: Any,
) -> Evaluation:
    """evaluate("runs/rl", "test.jsonl", samples=4, suffix="\\nThink.", sampling={"max_new_tokens": 512}).

    Where `model` is a run, its recipe holds the defaults; without data, all problems of its [eval] are measured.
    `reward` is what `rl` takes: a grader's name, a function, several of these, or the table [reward]. Other
    keywords are those of a recipe's [data]: suffix, system, prompt_key, limit, …
    """
    problems, sampling, rewarded = check_keywords(
        "evaluate",
        Keywords(kind=Problems, table="data", values=problems, also={"source": "rows"}),
        Keywords(kind=Sampling, table="sampling", values=sampling or {}, together=True),
        Keywords(kind=Reward, table="reward", values=name_rewards(reward or {}), together=True),
        others=OWN,
    )
    chosen = grader if reward is None else Reward(**rewarded)
    from foresail.evaluation.target import find_target

    target = find_target(folder_of(model))
    with tempfile.TemporaryDirectory(prefix="foresail-eval-") as folder:
        files = GivenFiles(Path(folder))
        is_file = data is None or isinstance(data, str | Path)
        source = (None if data is None else str(data)) if is_file else files.add_rows(data, "data")
        files.write()
        sets = target.problem_sets(source, problems)
        settings = target.sampling(sampling)
        rewards = [chosen if isinstance(chosen, Reward) else target.reward(entry, chosen) for entry in sets]
        results = []
        with open_evaluator(target, settings, device=device) as evaluator:
            for number, (entry, grading) in enumerate(zip(sets, rewards, strict=True)):
                results += evaluator.evaluate(
                    entry,
                    settings,
                    num_samples=target.num_samples(entry, samples),
                    output=Path(output or folder) / (str(number) if number else ""),
                    grader=grading,
                    seed=seed,
                )
        return Evaluation(results)
