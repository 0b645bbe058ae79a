"""Reinforcement learning with verifiable rewards, strictly on-policy between steps.

    problems -> n samples each -> verdicts -> advantages -> packed batches -> updates -> the same weights
    serve the next step

GRPO without a KL term, token-mean loss, clip-higher and dynamic sampling by default; the recipe changes each.
Old log-probabilities come from the engine. Samples come from `run.py`; the update is in `policy_update.py`,
a critic, with a recipe that asks for one, in `critic.py`. With `rollout.staleness = 1` a rollout runs beside the
update before it (`staleness.py`).

    foresail rl recipes/rl-arithmetic.toml
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from foresail.data.mixtures.reader import Reader
from foresail.data.problems.hints import check_hint
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.sources import reward_for
from foresail.rollout.collect import gradable, teaches
from foresail.train.policy.critic import open_critic
from foresail.train.policy.policy_update import update_policy
from foresail.train.references.kl import open_kl_reference
from foresail.train.references.teacher import open_teacher
from foresail.train.rollouts.run import open_run
from foresail.train.session import Outcome
from foresail.train.trainer import Trainer
from foresail.train.update.batches import any_reward_teaches, compute_advantages


def run_rl(
    recipe: Rl, *, resume: bool = False, changed_reward: bool = False, reader: Reader | None = None
) -> Outcome:
    """`changed_reward`: go on although a file of the rewards or of the environment is not as it was. `reader`: has
    some of the data already."""
    settings = {source.label: reward_for(source, recipe.reward) for source in recipe.data}
    useful = partial(any_reward_teaches, settings) if recipe.advantage.kind == "gdpo" else teaches
    usable = useful if recipe.dynamic_sampling.enabled else gradable
    with open_run(
        recipe,
        open_other_models,
        usable,
        resume=resume,
        changed_reward=changed_reward,
        reader=reader,
        check_problem=partial(check_hint, recipe.credit),
    ) as run:
        for step in run.steps():
            with run.update(step):
                kind = recipe.advantage.kind
                advantages_GN = None if kind == "gae" else compute_advantages(step.groups, kind, settings)
                done = run.session.on_all_ranks(update_policy, step.groups, advantages_GN, step.of_curriculum)
            step = replace(step, progress=replace(step.progress, entropy=done.entropy))
            run.end_step(step, done.metrics, done.credits, useful=useful)
    return run.outcome


def open_other_models(trainer: Trainer[Rl]) -> None:
    """Open the KL reference, critic and teacher on this rank, as the recipe asks."""
    trainer.reference, trainer.critic = open_kl_reference(trainer), open_critic(trainer)
    trainer.teacher = open_teacher(trainer, trainer.recipe.teacher)
