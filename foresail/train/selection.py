"""Which problems a step draws: the easy pool, the window of pass rates and the curriculum's mix, as state.

    selection = open_selection(progress, recipe, members)     # before the step
    lineup = selection.line_up(ids, seed=…, step=…)           # during it
    replace(progress, **selection.after(lineup, launched))    # after it, from the step's prefix alone

`Lineup` (rollout/pools.py) picks; this carries what it needs from step to step, in the checkpoint's `Progress`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foresail.data.prompts import PromptedProblem
from foresail.recipe.curriculum import stage_at
from foresail.recipe.levels import mix_refusals
from foresail.recipe.stages import Rl
from foresail.records import FAILURES, Group
from foresail.rollout.controller import outcome_of
from foresail.rollout.decks import Mix
from foresail.rollout.pass_window import PassWindow
from foresail.rollout.pools import EasyPool, Lineup
from foresail.train.checkpoint import Progress


@dataclass(frozen=True, kw_only=True)
class Selection:
    """All that decides which problems a step draws, as it stands before the step; None is what is switched off."""

    position: int
    pool: EasyPool | None
    window: PassWindow | None
    mix: Mix | None

    def line_up(self, ids: Sequence[str], *, seed: int, step: int) -> Lineup:
        return Lineup(
            ids,
            self.pool or EasyPool(alpha=0.0),
            position=self.position,
            seed=seed,
            step=step,
            mix=self.mix,
            window=self.window,
        )

    def after(self, lineup: Lineup, launched: Sequence[Group]) -> dict[str, Any]:
        """The fields of `Progress` that follow from the step's groups, up to the one that closed it."""
        changed: dict[str, Any] = {"position": lineup.position_after(len(launched))}
        if self.mix:
            changed["places"] = {**self.mix.places, **lineup.places_after(len(launched))}
        if self.pool:
            outcomes = {group.problem.id: outcome_of(group) for group in launched}
            changed["easy"] = self.pool.after(outcomes).state()
        if self.window:
            rates = {group.problem.id: group.pass_rate for group in launched if not group.failed}
            changed["rates"] = self.window.after(rates).state()
        return changed


def open_selection(progress: Progress, recipe: Rl, members: Mapping[int, Sequence[int]]) -> Selection:
    """`members` are the indices of the problems of each level; `recipe` is that of the step's stage."""
    alpha = recipe.dynamic_sampling.easy_pool
    return Selection(
        position=progress.position,
        pool=None if alpha is None else EasyPool(alpha=alpha, problems=tuple(progress.easy)),
        window=open_window(progress, recipe),
        mix=Mix(weights=recipe.mix, members=members, places=progress.places) if recipe.mix else None,
    )


def open_window(progress: Progress, recipe: Rl) -> PassWindow | None:
    settings = recipe.dynamic_sampling
    if settings.window is None:
        return None
    low, high = settings.window
    return PassWindow(
        low=low,
        high=high,
        visits=settings.window_visits,
        chance=settings.window_return,
        rates=progress.rates,
    )


def check_supply(problems: Sequence[PromptedProblem], recipe: Rl) -> None:
    """Every stage must find the problems of a step, each of them once."""
    counts = Counter(entry.problem.level for entry in problems if entry.problem.level is not None)
    for number, phase in enumerate(recipe.phases, start=1):
        where = f"curriculum stage {number}: " if recipe.curriculum else ""
        if wrong := next(mix_refusals(phase.mix, counts, phase.prompts_per_step), None):
            raise ValueError(f"{where}{wrong}")
        if len(problems) < phase.prompts_per_step:
            raise ValueError(
                f"{where}{recipe.data.source} has {len(problems)} problems and a step needs prompts_per_step = "
                f"{phase.prompts_per_step}; lower that, or bring more problems"
            )


def describe_selection(launched: Sequence[Group], progress: Progress, recipe: Rl) -> dict[str, float]:
    """What was drawn, by level, and what stands aside after the step; only of what the recipe has switched on."""
    metrics = dict(describe_levels(launched))
    if recipe.curriculum:
        metrics["curriculum/stage"] = 1 + stage_at(recipe.curriculum, progress.step + progress.ahead)
    if recipe.dynamic_sampling.easy_pool is not None:
        metrics["pool/easy"] = len(progress.easy)
    if window := open_window(progress, recipe):
        metrics |= {f"pool/window_{side}": count for side, count in window.sizes().items()}
    return metrics


def describe_levels(launched: Sequence[Group]) -> Iterator[tuple[str, float]]:
    """Shares of launches and of right answers by level; nothing where no problem has a level."""
    groups: dict[int, list[Group]] = {}
    for group in launched:
        if group.problem.level is not None:
            groups.setdefault(group.problem.level, []).append(group)
    for level, of_level in sorted(groups.items()):
        yield f"rollout/launched_level_{level}", len(of_level) / len(launched)
        judged = [
            verdict.status == "correct"
            for group in of_level
            for verdict in group.verdicts
            if verdict.status not in FAILURES
        ]
        if judged:
            yield f"rollout/accuracy_level_{level}", sum(judged) / len(judged)
