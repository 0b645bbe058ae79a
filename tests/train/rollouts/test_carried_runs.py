"""Runs that carry samples over (`dynamic_sampling.carry`) go on from any step as if they had not stopped."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from random_delays import steady_metrics
from safetensors.torch import load_file
from small_runs import train
from tiny_world import rl_recipe

from foresail.engine.request import Parked, Request
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Checkpoints, Sampling
from foresail.records import Sample
from foresail.rollout.collect import Collected, NoSignal, collect
from foresail.rollout.leftovers import Leftover
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.resume import go_back
from foresail.train.rollouts import sample_groups as sample_groups
from foresail.train.rollouts.leftovers import NAME, find_leftovers, write_leftovers
from foresail.train.stages.rl import run_rl

STEPS = 5
CARRY = DynamicSampling(carry=True)
EVERY = Checkpoints(every=1, keep=STEPS, resumable=STEPS)


def content(run: Path) -> tuple[object, ...]:
    """All that a run leaves but its times: tensors, metrics and samples."""
    directory, last = RunDirectory(run), RunDirectory(run).checkpoint_path(STEPS)
    files = [last / "model.safetensors", last / "trainer" / "optimizer.safetensors"]
    tensors = {
        f"{file.name} {name}": tensor.numpy().tobytes()
        for file in files
        for name, tensor in load_file(file).items()
    }
    samples = [directory.read_rollouts(step) for step in range(1, STEPS + 1)]
    return tensors, steady_metrics(run), samples, find_leftovers(last)


def test_a_run_that_goes_on_from_any_step_ends_the_same(tiny_checkpoint: Path, tmp_path: Path) -> None:
    changes = {"steps": STEPS, "dynamic_sampling": CARRY, "checkpoints": EVERY}
    outcome, _ = train(tiny_checkpoint, tmp_path, **changes)
    whole = content(outcome.run)
    left = [find_leftovers(outcome.run / f"checkpoints/step_{step}") for step in range(1, STEPS)]
    assert sum(any(each.samples for each in leftovers.values()) for leftovers in left) >= 2
    for step in range(STEPS - 1, 0, -1):
        go_back(RunDirectory(outcome.run), step)
        run_rl(rl_recipe(tiny_checkpoint, tmp_path, **changes), resume=True)
        assert content(outcome.run) == whole, step


def test_a_step_that_teaches_nothing_leaves_what_there_was(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done before is saved; after a resume the step is drawn again, and begins with what it began with."""
    changes = {"steps": STEPS, "dynamic_sampling": CARRY}
    whole, _ = train(tiny_checkpoint, tmp_path / "whole", **changes)

    def collect_in_vain(*arguments: Any, **options: Any) -> Collected:
        collected = collect(*arguments, **options)
        if arguments[2].step == 4:
            raise NoSignal("nothing to learn", collected)
        return collected

    cut = {**changes, "checkpoints": Checkpoints(every=100)}
    with monkeypatch.context() as patch:
        patch.setattr(sample_groups, "collect", collect_in_vain)
        with pytest.raises(NoSignal):
            train(tiny_checkpoint, tmp_path / "cut", **cut)
    resumed = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "cut", **cut), resume=True)
    assert content(resumed.run) == content(whole.run)


def test_leftovers_come_back_as_they_were(tmp_path: Path) -> None:
    numbers = random.Random(0)
    (tmp_path / "trainer").mkdir()
    for _ in range(100):
        leftovers = {f"problem {number}": any_leftover(numbers) for number in range(numbers.randint(0, 3))}
        (tmp_path / "trainer" / NAME).unlink(missing_ok=True)
        write_leftovers(leftovers, tmp_path)
        assert find_leftovers(tmp_path) == leftovers
    assert find_leftovers(None) == {} == find_leftovers(tmp_path / "elsewhere")


def any_leftover(numbers: random.Random) -> Leftover:
    places = numbers.sample(range(8), numbers.randint(0, 6))
    ended = numbers.randint(0, len(places))
    return Leftover(
        samples={place: any_sample(numbers) for place in places[:ended]},
        parked={
            place: tuple(any_parked(numbers) for _ in range(numbers.randint(1, 3)))
            for place in places[ended:]
        },
    )


def any_sample(numbers: random.Random) -> Sample:
    size = numbers.randint(1, 4)
    whole = [numbers.randrange(9) for _ in range(size)]
    logprobs = [-numbers.expovariate(1) for _ in range(size)]
    return Sample(
        ids=whole, loss_mask=whole, logprobs=logprobs, versions=whole, turns=whole, finish="stop", forced=[0]
    )


def any_parked(numbers: random.Random) -> Parked:
    size = numbers.randint(1, 4)
    request = Request(
        id="",
        prompt=tuple(numbers.randrange(99) for _ in range(3)),
        key=numbers.getrandbits(64),
        sampling=Sampling(max_new_tokens=9, temperature=numbers.random(), stop=("\n\n", "é")),
        stop_ids=(1, 2),
        begun=numbers.randint(0, 2),
        closing=(4,),
    )
    return Parked(
        request=request,
        ids=[numbers.randrange(99) for _ in range(size)],
        logprobs=[-numbers.expovariate(1) for _ in range(size)],
        versions=[numbers.randint(0, 3) for _ in range(size)],
        forced=[0],
        side={"experts": [[1, 2], None]},
        policy_version=numbers.randint(0, 3),
    )
