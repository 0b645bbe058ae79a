"""The supply of preferences: the numbers of the next step's entries, and notes on what was left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foresail.data.mixtures.mixture import describe_dropped
from foresail.data.preferences.mixture import PreferenceMixture, describe_unusable
from foresail.data.selection.launch_order import WHOLE
from foresail.data.selection.supply import Supply, draw
from foresail.recipe.stages.preference_stage import PreferenceStage
from foresail.recipe.stages.reward_model import RewardModel
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.session import Session


def report_left_out(session: Session[Any], mixture: PreferenceMixture[Any]) -> None:
    if mixture.dropped:
        limit = f"max_length {session.recipe.max_length}"
        session.display.note(describe_dropped(mixture.dropped, limit), style="yellow")
    if mixture.unusable:
        session.display.note(describe_unusable(mixture.unusable), style="yellow")


def draw_entries(
    supply: Supply, recipe: PreferenceStage | RewardModel, progress: Progress
) -> tuple[list[int], Progress]:
    """Numbers of the next step's preferences, too few at the data's end, and the progress after it."""
    strata = supply.strata(None, position=progress.position, places=progress.places)
    drawn, places = draw(strata, recipe.batch_size, seed=recipe.run.seed, position=progress.position)
    return drawn, replace(
        progress,
        step=progress.step + 1,
        updates=progress.step + 1,
        position=progress.position + recipe.batch_size,
        places={name: place for name, place in places.items() if name != WHOLE},
    )


def next_entries(session: Session[Any], supply: Supply) -> tuple[list[int], Progress] | None:
    """As `draw_entries`; None ends the run where too few are left for a step."""
    drawn, progress = draw_entries(supply, session.recipe, session.progress)
    if len(drawn) == session.recipe.batch_size:
        return drawn, progress
    session.display.note(f"data.epochs leaves less than step {progress.step} needs: the run ends here")
    session.finish()
    return None
