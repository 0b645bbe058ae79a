"""The selection of a step's problems: the state of easy pool, window of pass rates, sources and levels.

    selection = open_selection(progress, recipe, supply)      # before the step
    launch_order = selection.launch_order(ids, seed=…, step=…)      # during it
    replace(progress, **selection.after(launch_order, launched))    # after it, from the groups up to its end

`LaunchOrder` picks; this carries its state from step to step, in the checkpoint's `SelectionProgress`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foresail.data.problems.prompts import PromptedProblem
from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.launch_order import LaunchOrder
from foresail.data.selection.pass_window import PassWindow
from foresail.data.selection.strata import Stratum
from foresail.data.selection.supply import Supply
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.tables.curriculum import stage_at
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.levels import mix_refusals
from foresail.records import FAILURES, Group


class SelectionProgress(Protocol):
    """The part of a checkpoint's progress that the selection needs."""

    @property
    def step(self) -> int: ...

    @property
    def ahead(self) -> int: ...

    @property
    def position(self) -> int:
        """In the data's own order."""

    @property
    def easy(self) -> Sequence[str]:
        """Ids of problems in the easy pool."""

    @property
    def places(self) -> Mapping[str, int]:
        """Problems taken from the stratum of each source or level."""

    @property
    def rates(self) -> Mapping[str, list[float]]:
        """Latest pass rates by problem."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The state before a step that decides which problems it takes; None for parts that are switched off."""

    position: int
    pool: EasyPool | None
    window: PassWindow | None
    strata: Mapping[str, Stratum]
    places: Mapping[str, int]

    def launch_order(self, ids: Sequence[str], *, seed: int, step: int) -> LaunchOrder:
        return LaunchOrder(
            ids,
            self.pool or EasyPool(alpha=0.0),
            position=self.position,
            seed=seed,
            step=step,
            strata=self.strata,
            window=self.window,
        )

    def after(self, launch_order: LaunchOrder, launched: Sequence[Group]) -> dict[str, Any]:
        """The fields of `SelectionProgress` that follow from the step's groups, up to the one that closed it."""
        changed: dict[str, Any] = {"position": launch_order.position_after(len(launched))}
        if places := launch_order.places_after(len(launched)):
            changed["places"] = {**self.places, **places}
        rates = {group.problem.id: group.pass_rate for group in launched if not group.failed}
        if self.pool:
            changed["easy"] = self.pool.after(rates).state()
        if self.window:
            changed["rates"] = self.window.after(rates).state()
        return changed


def open_selection(progress: SelectionProgress, recipe: RolloutStage, supply: Supply) -> Selection:
    """`recipe` is that of the step's stage."""
    settings = recipe.dynamic_sampling
    alpha = settings.easy_pool
    return Selection(
        position=progress.position,
        pool=None if alpha is None else EasyPool(alpha=alpha, problems=tuple(progress.easy)),
        window=open_window(progress.rates, settings),
        strata=supply.strata(recipe.mix, position=progress.position, places=progress.places),
        places=progress.places,
    )


def open_window(rates: Mapping[str, list[float]], settings: DynamicSampling) -> PassWindow | None:
    if settings.window is None:
        return None
    low, high = settings.window
    return PassWindow(
        low=low,
        high=high,
        visits=settings.window_visits,
        chance=settings.window_return,
        rates=rates,
    )


def check_supply(problems: Sequence[PromptedProblem], recipe: RolloutStage) -> None:
    """Raise if a stage has fewer different problems than a step needs."""
    counts = Counter(entry.problem.level for entry in problems if entry.problem.level is not None)
    for number, phase in enumerate(recipe.phases, start=1):
        where = f"curriculum stage {number}: " if recipe.curriculum else ""
        if wrong := next(mix_refusals(phase.mix, counts, phase.prompts_per_step), None):
            raise ValueError(f"{where}{wrong}")
        if len(problems) < phase.prompts_per_step:
            raise ValueError(
                f"{where}{name_sources(recipe)} has {len(problems)} problems and a step needs prompts_per_step = "
                f"{phase.prompts_per_step}; lower that, or bring more problems"
            )


def name_sources(recipe: RolloutStage) -> str:
    return " and ".join(source.source for source in recipe.data)


def selection_metrics(
    launched: Sequence[Group], progress: SelectionProgress, recipe: RolloutStage
) -> dict[str, float]:
    """Launches by source and level, and how many problems the pool and the window hold back."""
    metrics = dict(level_metrics(launched))
    if len(recipe.data) > 1:
        metrics |= source_metrics(launched, [source.label for source in recipe.data])
    if recipe.curriculum:
        metrics["curriculum/stage"] = 1 + stage_at(recipe.curriculum, progress.step + progress.ahead)
    if recipe.dynamic_sampling.easy_pool is not None:
        metrics["pool/easy"] = len(progress.easy)
    if window := open_window(progress.rates, recipe.dynamic_sampling):
        metrics |= {f"pool/window_{side}": count for side, count in window.sizes().items()}
    return metrics


def source_metrics(launched: Sequence[Group], names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """How many groups of each source were launched, and the share of right answers where some were judged."""
    for name in names:
        of_source = [group for group in launched if group.problem.dataset == name]
        yield f"rollout/launched/{name}", len(of_source)
        if judged := judge_right(of_source):
            yield f"rollout/accuracy/{name}", sum(judged) / len(judged)


def judge_right(groups: Sequence[Group]) -> list[bool]:
    """Whether each judged sample is right; empty where some scores do not mark answers right or wrong."""
    statuses = [verdict.status for group in groups for verdict in group.verdicts]
    if "scored" in statuses:
        return []
    return [status == "correct" for status in statuses if status not in FAILURES]


def level_metrics(launched: Sequence[Group]) -> Iterator[tuple[str, float]]:
    """Shares of launches and of right answers by level; nothing where no problem has a level."""
    groups: dict[int, list[Group]] = {}
    for group in launched:
        if group.problem.level is not None:
            groups.setdefault(group.problem.level, []).append(group)
    for level, of_level in sorted(groups.items()):
        yield f"rollout/launched_level_{level}", len(of_level) / len(launched)
        if judged := judge_right(of_level):
            yield f"rollout/accuracy_level_{level}", sum(judged) / len(judged)
