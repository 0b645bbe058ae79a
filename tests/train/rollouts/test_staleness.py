"""`rollout.staleness = 1`: the next step's rollout beside the update, with the same outcome whoever is faster.

Most runs here have their engine in this process, on the copy of the weights that workers would read, and roll out
in the thread that they would: a recipe may not say so, for nothing is gained. One has worker processes.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from command_line import PATIENCE, servers
from random_delays import drawn, steady_metrics
from random_seed import random_seed
from run_ends import assert_same_end, last_step
from small_runs import weights
from stale_runs import STEPS, stale_recipe
from tiny_world import write_lines

from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Optimizer, Problems
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, Sample, Verdict
from foresail.rewards.by_source import RewardsBySource
from foresail.rollout.collect import Collected, NoSignal
from foresail.rollout.instance import EngineFailed
from foresail.runlog.directory import RunDirectory
from foresail.runlog.display import Display
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.rollouts import sample_groups as sample_groups
from foresail.train.rollouts.staleness import StaleRollouts, SynchronousRollouts
from foresail.train.session import Outcome
from foresail.train.stages import rl
from foresail.train.stages.rl import run_rl


def rows_of(outcome: Outcome, step: int) -> list[dict[str, Any]]:
    return RunDirectory(outcome.run).read_rollouts(step)


@pytest.fixture(scope="module")
def calm(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_rl(stale_recipe(tiny_checkpoint, tmp_path_factory.mktemp("calm")))


def test_samples_are_one_version_old_but_for_the_first_step(calm: Outcome) -> None:
    for step, record in enumerate(RunDirectory(calm.run).read_metrics()):
        if not step:
            continue
        versions = {
            version
            for row in rows_of(calm, step)
            for version, mask in zip(row["versions"], row["loss_mask"], strict=True)
            if mask
        }
        lag = 0 if step == 1 else 1
        assert versions == {step - 1 - lag}
        assert record["rollout/version_lag"] == record["rollout/version_lag_max"] == lag
        assert record["rollout/fresh_share"] == 1 - lag
        # what engines and the trainer say of the same weights is told apart from what an update changed
        assert ("rollout/logprob_kl" in record, "rollout/stale_kl" in record) == (not lag, bool(lag))
        assert lag == 0 or record["rollout/stale_kl"] > 1e-6
        assert record["rollout/importance_ratio"] == pytest.approx(1, abs=0.2)
        assert 0 <= record["rollout/importance_capped"] < 0.2
        waits = {"timing_s/wait_for_rollout", "timing_s/wait_for_update"} & record.keys()
        assert len(waits) == (2 if step < STEPS else 0)
        assert record["timing_s/rollout"] > 0


class Broken(BaseException):
    """As a kill: nothing tidies up after it."""


class Weather:
    """Random delays of updates, rollouts and verdicts; now and then one breaks, or the run is asked to stop."""

    def __init__(self, seed: int, *, breaks: float) -> None:
        self.numbers, self.breaks, self.broken = random.Random(seed), breaks, 0

    def nap(self) -> None:
        time.sleep(self.numbers.choice([0.0, self.numbers.uniform(0, 0.05)]))

    def storm(self, error: BaseException) -> None:
        if self.numbers.random() < self.breaks:
            self.broken += 1
            raise error

    @contextmanager
    def over(self) -> Iterator[None]:
        update, collect, judge = rl.update_policy, sample_groups.collect, RewardsBySource.judge

        def slow_update(session: Any, *given: Any) -> Any:
            self.nap()
            self.storm(Broken())
            session.stop.requested |= self.numbers.random() < self.breaks / 2
            done = update(session, *given)
            self.nap()
            self.storm(Broken())
            return done

        def slow_collect(*given: Any, **named: Any) -> Collected:
            self.nap()
            self.storm(EngineFailed("engine", "it was hit"))
            return collect(*given, **named)

        def slow_judge(rewards: RewardsBySource, problem: Problem, sample: Sample) -> Future[Verdict]:
            early, late = judge(rewards, problem, sample), Future[Verdict]()

            def tell() -> None:
                if late.set_running_or_notify_cancel():  # else its group was given up
                    late.set_result(early.result())

            threading.Timer(self.numbers.uniform(0, 0.01), tell).start()
            return late

        with (
            patch.object(rl, "update_policy", slow_update),
            patch.object(sample_groups, "collect", slow_collect),
            patch.object(RewardsBySource, "judge", slow_judge),
        ):
            yield


def go_on_until_the_end(recipe: Rl, weather: Weather) -> Outcome:
    run = RunDirectory(recipe.run.folder)
    while True:
        try:
            with weather.over():
                outcome = run_rl(recipe, resume=run.has_begun())
        except (Broken, EngineFailed):
            continue
        if outcome.finished:
            return outcome


def test_delays_errors_and_stops_change_nothing(tiny_checkpoint: Path, tmp_path: Path, calm: Outcome) -> None:
    weather = Weather(random_seed(), breaks=0.2)
    found = go_on_until_the_end(stale_recipe(tiny_checkpoint, tmp_path), weather)
    assert_same_end(found.run, calm.run)


@pytest.mark.usefixtures("forked_workers")
def test_workers_draw_the_same_beside_the_update(
    tiny_checkpoint: Path, tmp_path: Path, calm: Outcome
) -> None:
    """They read a copy of the weights in shared memory, which the update does not touch."""
    found = run_rl(stale_recipe(tiny_checkpoint, tmp_path, workers=2))
    assert drawn(found.run) == drawn(calm.run)
    assert torch.equal(weights(found.checkpoint), weights(calm.checkpoint))


def run_once(recipe: Rl, resume: bool) -> None:
    run_rl(recipe, resume=resume)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    tiny_checkpoint: Path, tmp_path: Path, calm: Outcome
) -> None:
    recipe, killed, numbers = stale_recipe(tiny_checkpoint, tmp_path), 0, random.Random(random_seed())
    run = RunDirectory(recipe.run.folder)
    code = None
    while code != 0:
        reached, deadline = last_step(run.path), time.monotonic() + PATIENCE
        process = servers().Process(target=run_once, args=(recipe, run.has_begun()))
        process.start()
        while killed < 2 and process.is_alive() and last_step(run.path) <= reached:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        if killed < 2:
            time.sleep(numbers.uniform(0, 0.3))
            process.kill()
        process.join(PATIENCE)
        code = process.exitcode
        assert code in (0, -signal.SIGKILL)
        killed += code != 0
    assert_same_end(run.path, calm.run)


# What comes next does not depend on when it is drawn.


def test_where_weights_stand_still_the_samples_are_those_drawn_in_turns(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """Problems, noise and stages are the same: of level 1 every answer is right, so its stage is left early."""
    rows = [
        {"id": f"p{n}", "prompt": f"{1 + n % 9} +{1 + n % 7} -2", "answer": str(n % 10), "level": 1 + n % 2}
        for n in range(40)
    ]
    (tmp_path / "rewards.py").write_text(
        "def easy(prompts, completions, level, **columns):\n"
        "    texts = [c if isinstance(c, str) else c[0]['content'] for c in completions]\n"
        "    return [1.0 if one == 1 else float(sum(map(ord, text)) % 2) for one, text in zip(level, texts)]\n"
    )
    changes = {
        "data": Problems(source=str(write_lines(tmp_path / "data.jsonl", rows)), difficulty_key="level"),
        "reward": Reward(grader=f"{tmp_path}/rewards.py:easy", workers=0),
        "curriculum": [{"steps": 1, "mix": [0, 1, 0, 0, 0]}, {"steps": 2, "mix": [1, 0, 0, 0, 0]}, {}],
        "optimizer": Optimizer(lr=1e-30),
        "dynamic_sampling": DynamicSampling(easy_pool=0.3, window=(0.05, 0.95)),
        "eval_every": 0,
    }
    late, early = (
        run_rl(stale_recipe(tiny_checkpoint, tmp_path / str(staleness), staleness=staleness, **changes))
        for staleness in (0, 1)
    )
    assert drawn(early.run) == drawn(late.run)
    stages = [record.get("curriculum/stage") for record in RunDirectory(early.run).read_metrics()]
    assert stages == [None, 1, 3, 3, 3]
    ours, theirs = (
        [
            {name: value for name, value in record.items() if not name.startswith(("rollout/", "actor/"))}
            for record in steady_metrics(outcome.run)
        ]
        for outcome in (early, late)
    )
    assert ours == theirs
    # samples that were drawn again in the next stage are of the weights of their time
    lags = [record["rollout/version_lag"] for record in RunDirectory(early.run).read_metrics()[1:]]
    assert lags == [0, 0, 1, 1]


def test_a_step_without_signal_ends_the_run_after_the_step_before_it(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    collect = sample_groups.collect

    def collect_until_third(fleet: Any, problem_of: Any, group_spec: Any, *given: Any, **named: Any) -> Any:
        found = collect(fleet, problem_of, group_spec, *given, **named)
        if group_spec.step == 3:
            raise NoSignal("nothing to learn from", found)
        return found

    recipe = stale_recipe(tiny_checkpoint, tmp_path, eval_every=0)
    with (
        patch.object(sample_groups, "collect", collect_until_third),
        pytest.raises(NoSignal, match="nothing to learn"),
    ):
        run_rl(recipe)
    run = RunDirectory(recipe.run.folder)
    assert last_step(run.path) == 2 and run.checkpoint_steps()[-1] == 2
    assert run.rollout_steps() == [1, 2, 3]


# The thread.


def make_stale_rollouts(sample_groups: Callable[..., Any]) -> StaleRollouts:
    return StaleRollouts(
        SynchronousRollouts(sample_groups, lambda version: None, Display("rl", 9)), last_step=9
    )


def test_an_update_that_fails_gives_up_the_rollout_beside_it() -> None:
    ended = threading.Event()

    def sample_groups(before: Progress, *, begin: Any, wait: Callable[[], None]) -> Any:
        begin(1)
        try:
            while True:
                wait()
        finally:
            ended.set()

    rollouts = make_stale_rollouts(sample_groups)
    with pytest.raises(KeyError), rollouts.beside_update(Progress(step=1)):
        raise KeyError
    assert ended.is_set() and rollouts.next is None


def test_an_error_of_the_engines_is_raised_as_it_is_once_the_update_is_done() -> None:
    def sample_groups(before: Progress, *, begin: Any, wait: Callable[[], None]) -> Any:
        raise EngineFailed("worker 0", "Traceback …\nMemoryError")

    updated = []
    with (
        pytest.raises(EngineFailed, match="worker 0 failed:\nTraceback …\nMemoryError"),
        make_stale_rollouts(sample_groups).beside_update(Progress(step=1)),
    ):
        updated.append(True)
    assert updated


def test_nothing_is_drawn_beyond_the_last_step() -> None:
    def sample_groups(before: Progress, *, begin: Any, wait: Callable[[], None]) -> Any:
        raise AssertionError

    rollouts = make_stale_rollouts(sample_groups)
    with rollouts.beside_update(Progress(step=9)):
        pass
    assert rollouts.next is None and not rollouts.take_figures()
