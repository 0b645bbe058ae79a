"""The table of stages: the type of each one's recipe, the function that runs it, and a line about it.

A new stage is a recipe type (`recipe/stages/NAME.py`), a function (`train/stages/NAME.py`) and a row here. Both are
named as "module:name" and imported when they are needed, so that the command line answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foresail.recipe.stages.stage import Stage


@dataclass(frozen=True, kw_only=True)
class StageEntry:
    """`function(recipe, resume=False)` trains, and returns the `Outcome`.

    Of a stage that `foresail.check` looks into, it also takes `reader`, which holds what was read there.
    """

    recipe: str
    function: str
    help: str
    also: str = ""  # another stage's command that takes its recipes, too


STAGES = {
    "pretrain": StageEntry(
        recipe="foresail.recipe.stages.pretrain:Pretrain",
        function="foresail.train.stages.pretrain:run_pretrain",
        help="Pretraining on token shards, in stages.",
    ),
    "sft": StageEntry(
        recipe="foresail.recipe.stages.sft:Sft",
        function="foresail.train.stages.sft:run_sft",
        help="Supervised fine-tuning on conversations.",
    ),
    "reward-model": StageEntry(
        recipe="foresail.recipe.stages.reward_model:RewardModel",
        function="foresail.train.stages.reward_model:run_reward_model",
        help="A reward model from preference pairs.",
    ),
    "dpo": StageEntry(
        recipe="foresail.recipe.stages.dpo:Dpo",
        function="foresail.train.stages.dpo:run_dpo",
        help="Preference optimisation (DPO) on pairs of a better and a worse answer.",
    ),
    "kto": StageEntry(
        recipe="foresail.recipe.stages.kto:Kto",
        function="foresail.train.stages.kto:run_kto",
        help="Preference optimisation (KTO) on answers that were each judged good or bad.",
    ),
    "rl": StageEntry(
        recipe="foresail.recipe.stages.rl:Rl",
        function="foresail.train.stages.rl:run_rl",
        help="Reinforcement learning with verifiable rewards.",
    ),
    "online-dpo": StageEntry(
        recipe="foresail.recipe.stages.online_dpo:OnlineDpo",
        function="foresail.train.stages.online_dpo:run_online_dpo",
        help="Preference optimisation on pairs of the model's own samples.",
        also="dpo",
    ),
    "distill": StageEntry(
        recipe="foresail.recipe.stages.distill:Distill",
        function="foresail.train.stages.distill:run_distill",
        help="On-policy distillation: the student samples, a teacher scores.",
    ),
}


def recipe_type(stage: str) -> type[Stage]:
    recipe: type[Stage] = find(STAGES[stage].recipe)
    return recipe


def stage_function(stage: str) -> Callable[..., Any]:
    function: Callable[..., Any] = find(STAGES[stage].function)
    return function


def find(place: str) -> Any:
    """find("json:dumps") -> the function `dumps` of the module `json`."""
    module, name = place.split(":")
    return getattr(import_module(module), name)
