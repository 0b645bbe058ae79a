"""The pairs of a stage that learns from preferences: those of the next step, and what is told of the others."""

from __future__ import annotations

from dataclasses import replace

from foresail.data.mixture import describe_dropped
from foresail.data.pairs import PairMixture, describe_unusable
from foresail.data.selection.lineup import WHOLE
from foresail.data.selection.supply import Supply, draw
from foresail.recipe.dpo import Dpo
from foresail.recipe.reward_model import RewardModel
from foresail.train.checkpoint import Progress
from foresail.train.session import Session


def tell_left_out(session: Session[Dpo] | Session[RewardModel], pairs: PairMixture) -> None:
    if pairs.dropped:
        limit = f"max_length {session.recipe.max_length}"
        session.display.note(describe_dropped(pairs.dropped, limit), style="yellow")
    if pairs.unusable:
        session.display.note(describe_unusable(pairs.unusable), style="yellow")


def draw_pairs(supply: Supply, recipe: Dpo | RewardModel, progress: Progress) -> tuple[list[int], Progress]:
    """Numbers of the next step's pairs, too few at the data's end, and where the run stands after it."""
    decks = supply.decks(None, position=progress.position, places=progress.places)
    drawn, places = draw(decks, recipe.batch_size, seed=recipe.run.seed, position=progress.position)
    return drawn, replace(
        progress,
        step=progress.step + 1,
        updates=progress.step + 1,
        position=progress.position + recipe.batch_size,
        places={name: place for name, place in places.items() if name != WHOLE},
    )


def next_pairs(
    session: Session[Dpo] | Session[RewardModel], supply: Supply
) -> tuple[list[int], Progress] | None:
    """What `draw_pairs` gives; None, and the run ends, where it is too little for a step."""
    drawn, progress = draw_pairs(supply, session.recipe, session.progress)
    if len(drawn) == session.recipe.batch_size:
        return drawn, progress
    session.display.note(f"data.epochs leaves less than step {progress.step} needs: the run ends here")
    session.finish()
    return None
