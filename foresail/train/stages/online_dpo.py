"""Online DPO: a better and a worse sample of a prompt make a preference pair for the policy to learn from.

    prompts -> n samples each -> rewards -> pairs by rank, or right against wrong -> updates -> the same weights
    serve the next step

Samples come from `run.py`, rewards from any grader, a reward model among them; the loss is `dpo.py`'s.

    foresail online-dpo recipes/online-dpo-compass-v2.toml
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from foresail.algorithms.preference_losses import preference_loss
from foresail.data.mixtures.reader import Reader
from foresail.recipe.stages.online_dpo import OnlineDpo
from foresail.records import Group, TrainPair
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.policy.metrics import mean_over_updates
from foresail.train.references.online import open_online_reference, renew_reference, save_reference
from foresail.train.references.reference import compared
from foresail.train.rollouts.run import open_run
from foresail.train.session import Outcome
from foresail.train.stages.dpo import over_pairs
from foresail.train.stages.sampled_pairs import pair_metrics, pairs_of
from foresail.train.trainer import Trainer
from foresail.train.update.batches import split
from foresail.train.update.loop import with_learning_rates, work_metrics
from foresail.train.update.split import balance_metrics
from foresail.train.update.split_answers import answer_batches
from foresail.train.update.step import prefixed, token_loss, train_step


def run_online_dpo(
    recipe: OnlineDpo, *, resume: bool = False, changed_reward: bool = False, reader: Reader | None = None
) -> Outcome:
    """`changed_reward`, `reader`: as in `run_rl`."""
    with open_run(
        recipe,
        open_online_reference,
        partial(gives_pairs, recipe=recipe),
        resume=resume,
        changed_reward=changed_reward,
        reader=reader,
    ) as run:
        session = run.session
        if recipe.reference.renew_every:
            session.also_save.append(lambda checkpoint: session.on_all_ranks(save_reference, checkpoint))
        for step in run.steps():
            pairs = [pair for group in step.groups for pair in pairs_of(group, recipe.pairing)]
            with run.update(step):
                metrics = session.on_all_ranks(update_on_pairs, pairs)
            metrics |= pair_metrics(step.rolled.collected.launched, recipe.pairing)
            run.end_step(step, metrics)
    return run.outcome


def gives_pairs(group: Group, recipe: OnlineDpo) -> bool:
    return bool(pairs_of(group, recipe.pairing))


def update_on_pairs(trainer: Trainer[OnlineDpo], pairs: Sequence[TrainPair]) -> dict[str, float]:
    """The step's optimiser updates, each over its own share of the pairs; then, where it is time, a new reference.

    Every rank has all pairs, and computes its share. Metrics are means over updates.
    """
    recipe, pairs = trainer.recipe, compared(trainer, pairs)
    shares = [[pairs[i] for i in row] for row in split(len(pairs), recipe.updates_per_step)]
    updates = [[*answer_batches(trainer, share)] for share in shares]
    metrics = balance_metrics(updates, trainer.world) | work_metrics(trainer, updates)
    loss = partial(
        token_loss,
        loss=partial(preference_loss, settings=recipe.loss),
        mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps),
    )
    results = []
    for (share, batches), rate in with_learning_rates(trainer, [*zip(shares, updates, strict=True)]):
        result = over_pairs(train_step(trainer.policy, batches, loss, learning_rate=rate), share)
        results.append(prefixed("actor", {"dpo_loss": result.pop("loss"), **result, "lr": rate}))
    every = recipe.reference.renew_every
    if every and (trainer.progress.step + 1) % every == 0:
        renew_reference(trainer)
    return metrics | mean_over_updates(results) | {"actor/updates": len(results), "pairs/count": len(pairs)}
