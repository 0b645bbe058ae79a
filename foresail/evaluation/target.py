"""The target of an evaluation or generation: a checkpoint, or a run with its recipe's prompts and graders.

target = find_target(Path("runs/rl"), ["sampling.temperature=0.6"])
target.problem_sets(None, {"limit": 100})     # the recipe's [eval], or its prompts' form around another file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foresail.evaluation.checkpoint import choose_grader
from foresail.recipe.checkpoint_path import trained_checkpoint
from foresail.recipe.hub import fetch
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.tables import parts
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import reward_for
from foresail.recipe.tables.values import read_options
from foresail.runlog.directory import RunDirectory

NUM_SAMPLES = 8
# Of a source's table: what is the data's own, and no other file's.
OWN = dict.fromkeys(("name", "limit", "difficulty", "difficulty_key", "prompt_key", "answer_key"))


@dataclass(frozen=True, kw_only=True)
class Target:
    """A checkpoint, and its run's recipe, or None if there is none with problems."""

    checkpoint: Path
    recipe: RolloutStage | None = None

    def problem_sets(self, data: str | None, changes: Mapping[str, Any]) -> list[parts.Problems]:
        """Problem sets to measure on; `changes` override the recipe, and None is no change."""
        changed = {name: value for name, value in changes.items() if value is not None}
        own_sets: Sequence[parts.Problems] = (
            () if self.recipe is None else self.recipe.eval or self.recipe.data
        )
        if data is not None:
            form = own_sets[0].model_dump(include=set(parts.Problems.model_fields)) | OWN if own_sets else {}
            return [parts.Problems(**{**form, **changed, "source": data})]
        if self.recipe is None or not self.recipe.eval:
            raise ValueError(
                f"{self.checkpoint} has no held-out problems in a recipe; name some with --data FILE"
            )
        return [problems.model_copy(update=changed) for problems in self.recipe.eval]

    def sampling(self, changes: Mapping[str, Any]) -> parts.Sampling:
        changed = {name: value for name, value in changes.items() if value is not None}
        usual = parts.Sampling() if self.recipe is None else self.recipe.sampling
        return parts.Sampling(**(usual.model_dump() | changed))

    def reward(self, problems: parts.Problems, grader: str | None) -> Reward:
        """The requested grader, else the run's grader for these problems."""
        if grader is not None or self.recipe is None:
            return choose_grader(grader or "math")
        return reward_for(problems, self.recipe.reward)

    @property
    def environment(self) -> Environment | None:
        return None if self.recipe is None else self.recipe.environment

    @property
    def prompt_tokens(self) -> int:
        """The longest prompt that a program may write; 0 where none writes any."""
        writes = self.environment is not None and self.environment.program is not None
        return self.recipe.max_prompt_tokens if writes and self.recipe is not None else 0

    @property
    def stop(self) -> tuple[str, ...]:
        return () if self.recipe is None else self.recipe.sampling.stop

    @property
    def system(self) -> str | None:
        return None if self.recipe is None else self.recipe.data[0].system

    @property
    def suffix(self) -> str:
        return "" if self.recipe is None else self.recipe.data[0].suffix

    @property
    def max_new_tokens(self) -> int | None:
        return None if self.recipe is None else self.recipe.sampling.max_new_tokens

    @property
    def template_options(self) -> dict[str, Any]:
        return {} if self.recipe is None else read_options(self.recipe.model.template_options)

    def num_samples(self, problems: parts.Problems, asked: int | None) -> int:
        return asked if asked is not None else getattr(problems, "samples", 0) or NUM_SAMPLES


def in_modes(sets: Sequence[parts.Problems], thinking: str | None) -> list[tuple[parts.Problems, str]]:
    """Each set with thinking "on", "off" or both one after the other, and the mode in words; None: as it says.

    Sets that differ by their mode and name alone, as those of a recipe with both modes do, are then one set.
    """
    if thinking is None:
        return [(problems, "") for problems in sets]
    modes = {"on": (True,), "off": (False,), "both": (True, False)}[thinking]
    different: dict[str, parts.Problems] = {}
    for problems in sets:
        different.setdefault(problems.model_dump_json(exclude={"name", "thinking"}), problems)
    return [
        (problems.model_copy(update={"thinking": mode}), f"thinking {'on' if mode else 'off'}")
        for problems in different.values()
        for mode in modes
    ]


def find_player(path: Path, recipe: Path | None = None) -> Target:
    """Who samples solutions: with an environment, as its recipe says; else a checkpoint alone, as options say."""
    target = find_target(path)
    if recipe is not None:
        loaded = load_recipe(recipe)
        if not isinstance(loaded, RolloutStage) or loaded.environment is None:
            raise ValueError(f"{recipe} has no [environment] to play; name a recipe of rl that has one")
        target = replace(target, recipe=loaded)
    return target if target.environment is not None else Target(checkpoint=target.checkpoint)


def find_target(path: Path, overrides: Sequence[str] = ()) -> Target:
    """A run's best checkpoint, or its newest, with its recipe, overrides laid over it; a checkpoint is itself."""
    path = Path(fetch(str(path)))
    run = RunDirectory(path)
    if not run.recipe_path.is_file():
        if overrides:
            raise ValueError(
                f"{path} is no run, so there is no recipe for {' '.join(overrides)} to change; use options such as "
                "--suffix and --max-new-tokens"
            )
        return Target(checkpoint=path)
    recipe, checkpoint = load_recipe(run.recipe_path, overrides), trained_checkpoint(path)
    return Target(checkpoint=checkpoint, recipe=recipe if isinstance(recipe, RolloutStage) else None)
