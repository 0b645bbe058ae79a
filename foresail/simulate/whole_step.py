"""Simulates a whole step: rollout, sync of weights, and the trainer's update.

results = simulate(simulation)
whole = whole_steps(simulation, results)      # None without [trainer]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foresail.simulate.costs import CARDS
from foresail.simulate.overlap import mean_step_seconds
from foresail.simulate.settings import Simulation
from foresail.simulate.step import StepResult
from foresail.simulate.updates import UpdateTime, update_time


@dataclass(frozen=True, kw_only=True)
class WholeSteps:
    """Seconds of one step in a long run, and of its parts: means over the simulated steps."""

    seconds: float
    rollout_seconds: float
    sync_seconds: float
    update_seconds: float
    exposed_seconds: float  # of the update: communication without overlap
    imbalance: float  # of the update: the slowest rank's FLOPs over the mean's
    tokens_per_card_second: float  # generated, by all cards together


def whole_steps(simulation: Simulation, results: Sequence[StepResult]) -> WholeSteps | None:
    if simulation.trainer is None:
        return None
    updates = [step_updates(simulation, result.trained) for result in results]
    rollouts = [result.seconds for result in results]
    spent, sync = [sum(each.seconds for each in step) for step in updates], sync_seconds(simulation)
    seconds = mean_step_seconds(rollouts, spent, sync, staleness=simulation.rollout.staleness)
    steps, every = len(results), [each for step in updates for each in step]
    return WholeSteps(
        seconds=seconds,
        rollout_seconds=sum(rollouts) / steps,
        sync_seconds=sync,
        update_seconds=sum(spent) / steps,
        exposed_seconds=sum(each.exposed for each in every) / steps,
        imbalance=sum(each.imbalance for each in every) / len(every),
        tokens_per_card_second=sum(result.tokens for result in results)
        / steps
        / seconds
        / simulation.num_cards,
    )


def step_updates(simulation: Simulation, lengths: Sequence[int]) -> list[UpdateTime]:
    """The optimiser updates of a step; all passes take the same time."""
    trainer = simulation.trainer
    assert trainer is not None, "there is a trainer"
    ranks = trainer.on(simulation.trainer_ranks, CARDS[simulation.cluster.card], simulation.network.links)
    shares = [lengths[start :: trainer.updates] for start in range(trainer.updates)]
    return [update_time(share, trainer.model, ranks) for share in shares] * trainer.passes


def sync_seconds(simulation: Simulation) -> float:
    cluster = simulation.cluster
    assert simulation.trainer is not None, "there is a trainer"
    return simulation.sync.seconds(
        cluster.weight_gb * 1e9,
        instances=cluster.instances,
        cards_per_instance=cluster.cards_per_instance,
        shared=simulation.trainer.ranks is None,
        links=simulation.network.links,
    )
