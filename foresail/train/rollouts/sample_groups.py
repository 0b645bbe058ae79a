"""One step's judged groups: samples drawn between the updates, or one step stale.

rollouts = open_rollouts(session, setup, anew=False)
rolled = rollouts.take(session.progress, watch)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from foresail.agents.build import turn_sampling
from foresail.data.selection.selection import open_selection
from foresail.recipe.stages.rollout_stage import RolloutStage, Sampled
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.rollout.collect import Collected, collect
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.leftovers import CarryingStream
from foresail.rollout.stream import sleep_briefly, watched
from foresail.runlog.phase import Phase
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.rollouts.engine_copy import refresh_copy
from foresail.train.rollouts.leftovers import find_leftovers, write_leftovers
from foresail.train.rollouts.result import RolloutResult, find_rollout_result
from foresail.train.rollouts.setup import Setup
from foresail.train.rollouts.staleness import Rollouts, StaleRollouts, SynchronousRollouts
from foresail.train.session import Session


def open_rollouts(session: Session[Sampled], setup: Setup, *, anew: bool) -> Rollouts:
    """`anew`: rewards or environment have changed, so the checkpoint's samples for the next step are drawn
    again.
    """
    synchronous = SynchronousRollouts(
        partial(sample_groups, session.recipe, setup),
        partial(update_engines, session, setup.fleet),
        session.display,
    )
    if setup.leftovers is not None:
        setup.leftovers.update(find_leftovers(session.start))
        session.also_save.append(partial(write_leftovers, setup.leftovers))
    if not session.recipe.rollout.staleness:
        return synchronous
    drawn = find_rollout_result(session.start, {entry.problem.id: entry.problem for entry in setup.problems})
    if drawn is not None and anew:
        session.display.note(f"the samples of step {session.progress.step + 1} are drawn and judged anew")
        drawn = None
    stale = StaleRollouts(synchronous, last_step=session.recipe.steps, drawn=drawn)
    session.also_save.append(stale.save)
    return stale


def sample_groups(
    run: RolloutStage,
    setup: Setup,
    before: Progress,
    *,
    begin: Callable[[int], Phase],
    wait: Callable[[], None] = sleep_briefly,
) -> RolloutResult:
    """Generate and judge until there are enough groups to learn from, with the weights that engines have.

    With it comes where the next step goes on: that follows from the groups up to the one that closed the
    step, whatever else was under way.
    """
    start, step = time.time(), before.step + 1
    recipe = run.at(step + before.ahead)  # the curriculum's stage
    settings = recipe.dynamic_sampling
    selection = open_selection(before, recipe, setup.supply)
    ids = [entry.problem.id for entry in setup.problems]
    launch_order = selection.launch_order(ids, seed=recipe.run.seed, step=step)
    if len(launch_order) < recipe.prompts_per_step:  # each source was passed as often as it may be
        nothing = Collected(launched=(), chosen=())
        return RolloutResult(collected=nothing, changes={}, figures={}, events=[], start=start, end=start)
    phase = begin(recipe.samples_per_step)
    # a copy: of a step that gives nothing to learn, and is drawn again after a resume, nothing is left over
    leftovers = None if setup.leftovers is None else dict(setup.leftovers)
    with setup.fleet.at_work():
        collected = collect(
            setup.fleet,
            lambda launch: setup.problems[launch_order.pick(launch)],
            replace(setup.group_spec, step=step, sampling=turn_sampling(recipe.sampling, setup.episodes)),
            watched(setup.rewards.judge, phase.advance),
            judge_group=setup.rewards.judge_group,
            controller=build_controller(settings, recipe.prompts_per_step, len(launch_order), before.share),
            usable=setup.usable,
            rewards_of=partial(setup.rewards.reward, limit=recipe.sampling.max_new_tokens),
            wait=wait,
            stream=setup.stream if leftovers is None else partial(CarryingStream, leftovers=leftovers),
        )
    if setup.leftovers is not None and leftovers is not None:
        setup.leftovers.clear()
        setup.leftovers.update(leftovers)
    changes = {
        **selection.after(launch_order, collected.launched),
        "step": step,
        "updates": before.updates + (0 if step <= recipe.critic_only_steps else recipe.updates_per_step),
        "share": collected.share,
    }
    return RolloutResult(
        collected=collected,
        changes=changes,
        figures=setup.take_figures(),
        events=setup.fleet.event_log.take(),
        start=start,
        end=time.time(),
    )


def update_engines(session: Session[Sampled], fleet: Fleet, version: int) -> None:
    """Give the engines the current weights."""
    session.on_all_ranks(refresh_copy, version)
    fleet.update_weights(version)


def build_controller(
    settings: DynamicSampling, num_groups: int, num_problems: int, share: float
) -> Controller:
    """Without dynamic sampling exactly `prompts_per_step` groups are launched."""
    if not settings.enabled:
        return Controller.for_all(num_groups)
    return Controller(
        num_groups=num_groups, cap=min(num_groups * settings.max_rounds, num_problems), share_before=share
    )
