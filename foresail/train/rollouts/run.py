"""The run of a stage that samples: its session, engines, rewards and rollouts, and the work of every step.

    with open_run(recipe, open_models, usable, resume=False) as run:
        for step in run.steps():
            with run.update(step):
                metrics = run.session.on_all_ranks(update, step.groups)
            run.end_step(step, metrics)
    return run.outcome

A step is yielded with its samples; the stage learns from them. A step whose samples teach nothing is not yielded:
it ends a curriculum's stage, or the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic

from foresail.agents.build import open_episodes
from foresail.data.mixtures.reader import Reader
from foresail.data.selection.selection import selection_metrics
from foresail.model.determinism import deterministic
from foresail.model.linear import batch_invariant
from foresail.recipe.stages.rollout_stage import Sampled
from foresail.recipe.tables.curriculum import steps_left
from foresail.records import Group, JudgeAway, RunStopped
from foresail.rewards.thinking import open_counter, thinking_metrics
from foresail.rollout.collect import NoSignal, teaches
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.policy.metrics import collected_metrics
from foresail.train.policy.turn_credit import Credits
from foresail.train.ranks.launch import open_ranks, placed
from foresail.train.rollouts.log import log_rollouts, log_timeline
from foresail.train.rollouts.measure import measure
from foresail.train.rollouts.result import RolloutResult
from foresail.train.rollouts.rewards import (
    fingerprint_rewards_of_run,
    open_rewards,
    report_failures,
    report_prints,
)
from foresail.train.rollouts.sample_groups import open_rollouts
from foresail.train.rollouts.setup import CheckProblem, Setup, accept, prepare
from foresail.train.rollouts.staleness import Rollouts
from foresail.train.rollouts.start_check import check_start
from foresail.train.session import Outcome, Session
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.flops import PeakMemory, pace_metrics


class NothingToLearn(RunStopped):
    """The first step has nothing to learn from; the grader may be wrong."""


@contextmanager
def open_run(
    recipe: Sampled,
    open_models: Callable[[Trainer[Sampled]], None],
    usable: Callable[[Group], bool],
    *,
    resume: bool,
    changed_reward: bool = False,
    reader: Reader | None = None,
    check_problem: CheckProblem = accept,
) -> Iterator[RolloutRun[Sampled]]:
    """`open_models` opens those besides the policy, on every rank; `usable`: whether a group can be learned from.
    `changed_reward` accepts changed files of rewards or the environment. `reader` may have read the data already.
    `check_problem` raises if the stage cannot use the first problem.
    """
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_rewards(recipe) as gradings,
        open_episodes(recipe.environment) as episodes,
        batch_invariant(recipe.engine.batch_invariant),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world, changed_reward=changed_reward) as session,
    ):
        fingerprint_rewards_of_run(session, gradings, changed=changed_reward)
        session.display.begin("reading the data")
        setup = prepare(session, gradings, episodes, reader, open_models, usable, check_problem)
        with closing(setup.fleet):
            check_start(session, setup)
            rollouts = open_rollouts(session, setup, anew=changed_reward)
            yield RolloutRun(
                session=session, setup=setup, rollouts=rollouts, memory=PeakMemory(session.device)
            )


@dataclass(frozen=True, kw_only=True)
class RolloutStep:
    """A step with its samples; `progress` is the run's after it."""

    number: int
    rolled: RolloutResult
    progress: Progress
    watch: Stopwatch

    @property
    def groups(self) -> tuple[Group, ...]:
        """Those to learn from."""
        return self.rolled.collected.chosen

    @property
    def of_curriculum(self) -> int:
        """Its number in the curriculum, of which steps may have been skipped."""
        return self.number + self.progress.ahead


@dataclass(frozen=True, kw_only=True)
class RolloutRun(Generic[Sampled]):
    """Made by `open_run`; its steps hold samples, and are ended by `end_step`."""

    session: Session[Sampled]
    setup: Setup
    rollouts: Rollouts
    memory: PeakMemory

    @property
    def outcome(self) -> Outcome:
        return self.session.outcome

    def steps(self) -> Iterator[RolloutStep]:
        session = self.session
        for number in session.steps():
            watch = Stopwatch()
            rolled = self.take_rollout(watch)
            collected = rolled.collected
            if not collected.launched:
                self.end_early(number)
                continue
            self.memory.note(beside=self.setup.fleet.cache_bytes)
            if not collected.chosen:
                log_rollouts(session, number, collected)
                log_timeline(session, number, watch, rolled.events)
                self.leave_stage(number)
                continue
            progress = replace(session.progress, **rolled.changes)
            yield RolloutStep(number=number, rolled=rolled, progress=progress, watch=watch)
        report_failures(session)

    def take_rollout(self, watch: Stopwatch) -> RolloutResult:
        session = self.session
        try:
            return self.rollouts.take(session.progress, watch)
        except NoSignal as stopped:
            log_rollouts(session, session.progress.step + 1, stopped.collected)
            if session.progress.step:  # else nothing was learned, and the folder may be used again
                session.save()
            raise
        except JudgeAway:
            if session.progress.step:
                session.save()
            raise

    @contextmanager
    def update(self, step: RolloutStep) -> Iterator[None]:
        """Around the step's updates. The next rollout may run at the same time."""
        with self.rollouts.beside_update(step.progress), step.watch("update"):
            yield
        self.memory.note()

    def end_step(
        self,
        step: RolloutStep,
        metrics: Mapping[str, Any],
        credits: Credits = (),
        *,
        useful: Callable[[Group], bool] = teaches,
    ) -> None:
        """Measure, log and save; `credits` are those of turns, where they were weighed, and `useful` says whether
        siblings differ in what the stage compares.
        """
        session, setup, watch, collected = self.session, self.setup, step.watch, step.rolled.collected
        recipe = session.recipe
        figures = collected_metrics(
            collected,
            rollout_seconds=watch.seconds["rollout"],
            step_seconds=watch.total,
            useful=useful,
        )
        figures |= thinking_metrics(open_counter(session.tokenizer), collected.launched)
        figures |= {**step.rolled.figures, **self.rollouts.take_figures()}
        tflop, seconds = metrics.get("perf/update_tflop", 0.0), watch.seconds["update"]
        figures |= pace_metrics(session.device, tflop / session.world.size, seconds) | self.memory.metrics()
        figures |= selection_metrics(collected.launched, step.progress, recipe)
        figures |= {"data/dropped": setup.num_dropped} if setup.num_dropped else {}
        if recipe.eval_every and step.number % recipe.eval_every == 0:
            with watch("eval"):
                figures |= measure(session, setup, step.number)
        log_rollouts(session, step.number, collected, credits)
        log_timeline(session, step.number, watch, [*step.rolled.events, *setup.fleet.event_log.take()])
        session.end_step(step.progress, {**metrics, **figures, **watch.metrics()})
        report_prints(session, setup.rewards.gradings)

    def end_early(self, step: int) -> None:
        """The sources' epochs are over: there is no whole step left."""
        self.session.display.note(
            f"data.epochs leaves fewer problems than step {step} needs: the run ends here"
        )
        self.session.finish()

    def leave_stage(self, step: int) -> None:
        """Every answer was right: the step is done in the curriculum's next stage; after the last, not at all."""
        session = self.session
        note, skipped_steps = f"every answer of step {step} is right", session.progress.ahead
        remaining = steps_left(session.recipe.curriculum, step + skipped_steps)
        if remaining is not None:
            session.display.note(f"{note}: on to the curriculum's next stage, {remaining + 1} steps early")
            session.progress = replace(session.progress, ahead=skipped_steps + remaining + 1)
        elif session.progress.step:
            session.display.note(f"{note}: nothing is left to learn here")
            session.finish()
        else:
            raise NothingToLearn(
                f"{note}, and nothing was learned yet; read {session.run.rollout_path(step)}: if the grader "
                "accepts anything, correct it; if the answers are right, bring harder problems"
            )
