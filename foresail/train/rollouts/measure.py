"""The current policy's accuracy on the recipe's held-out problems."""

from __future__ import annotations

from foresail.agents.build import turn_sampling
from foresail.recipe.stages.rollout_stage import Sampled
from foresail.train.rollouts.held_out import held_out_accuracy
from foresail.train.rollouts.sample_groups import update_engines
from foresail.train.rollouts.setup import Setup
from foresail.train.session import Session


def measure(session: Session[Sampled], setup: Setup, step: int) -> dict[str, float]:
    num_attempts = sum(held_out.num_attempts for held_out in setup.held_out)
    session.display.begin("evaluation", num_attempts, span=(1.0, 1.0) if step else (0.0, 0.0))
    update_engines(session, setup.fleet, step)
    with setup.fleet.at_work():
        accuracies = held_out_accuracy(
            setup.fleet,
            setup.held_out,
            turn_sampling(session.recipe.sampling, setup.episodes),
            session.recipe.run.seed,
            stream=setup.stream,
            advance=session.display.advance,
        )
    setup.take_figures()  # reset: they belong to no training step
    return accuracies
