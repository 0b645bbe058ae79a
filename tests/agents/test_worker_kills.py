"""Episodes over worker processes of which some are killed: none is lost, none comes twice, every token is the same.

FORESAIL_EPISODE_SOAK=10000 runs so many; 60 in a normal run.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from small_worlds import TOKENIZER, answer, problems, random_model, spec_of

from foresail.agents.environment import Observation
from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.engine.engine import Engine
from foresail.model.decoder import Decoder
from foresail.recipe.tables.parts import Rollout
from foresail.records import Group, Problem, RunStopped, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.native import NativeInstance
from foresail.rollout.remote.worker import WorkerInstance
from foresail.rollout.stream import Judge, sample_all

EPISODES = int(os.environ.get("FORESAIL_EPISODE_SOAK", "60"))
SAMPLES, MAX_TURNS, CHUNK = 3, 5, 8
TURNS_BETWEEN_KILLS = (15 + EPISODES // 100, 35 + EPISODES // 50)
OPTIONS = {"num_pages": 300, "page_size": 4, "max_running": 8, "batch_invariant": True}
RIGHT = Verdict(status="correct", score=1.0)


class Workers:
    """Two of them; one that is gone is replaced when the next sample is judged."""

    def __init__(self, model: Decoder) -> None:
        self.model, self.numbers, self.names = model, random.Random(0), count()
        self.pair = [self.start(), self.start()]
        self.fleet: Fleet = gather(self.pair, Rollout(policy="context", chunk_tokens=CHUNK), max_length=64)
        self.kills, self.caught_at_work, self.dying = 0, 0, False
        self.turns_left = self.numbers.randint(*TURNS_BETWEEN_KILLS)

    def start(self) -> WorkerInstance:
        return WorkerInstance(f"worker {next(self.names)}", self.model, OPTIONS)

    def turn_ended(self) -> None:
        """On the environments' thread: now and then a worker is killed, whatever it is doing."""
        self.turns_left -= 1
        if self.turns_left < 0 and not self.dying:
            at_work = [worker for worker in self.pair if worker.load]
            victim = self.numbers.choice(at_work or self.pair)
            self.dying, self.kills = True, self.kills + 1
            self.caught_at_work += bool(at_work)
            assert victim.process.pid is not None
            os.kill(victim.process.pid, signal.SIGKILL)
            self.turns_left = self.numbers.randint(*TURNS_BETWEEN_KILLS)

    def judge(self, problem: Problem, sample: Sample) -> Any:
        if len(self.fleet.instances) < 2:
            alive = [worker for worker in self.pair if worker.name in self.fleet.instances]
            self.pair = [*alive, self.start()]
            self.fleet.add(self.pair[-1])
            self.dying = False
        return settled(RIGHT)


class Telling:
    """A world that says when it is asked, and takes its time now and then."""

    def __init__(self, turn_ended: Callable[[], None]) -> None:
        self.turn_ended = turn_ended

    async def reset(self, problem: Problem) -> None:
        self.problem = problem

    async def step(self, response: str) -> Observation:
        self.turn_ended()
        await asyncio.sleep(0.002 * (len(response) % 2))
        return answer(self.problem, response)

    async def close(self) -> None: ...


def play(fleet: Fleet, judge: Judge, turn_ended: Callable[[], None]) -> Iterator[Group]:
    environments = Environments(partial(Telling, turn_ended), step_seconds=600)
    stream = partial(EpisodeStream, environments=environments, tokenizer=TOKENIZER, max_turns=MAX_TURNS)
    try:
        yield from sample_all(fleet, problems(EPISODES // SAMPLES), spec_of(SAMPLES), judge, stream=stream)
    finally:
        environments.close()
        assert not environments.by_id
    assert not fleet.busy and len(fleet.pool) == 0 and fleet.scheduler.num_waiting == 0


def drawn(group: Group) -> list[tuple[Any, ...]]:
    return [
        (sample.ids, sample.loss_mask, sample.turns, sample.turn_rewards, sample.finish, sample.logprobs)
        for sample in group.samples
    ]


def num_open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.usefixtures("forked_workers")
def test_killed_workers_lose_double_and_change_no_episode() -> None:
    model = random_model()
    calm = gather([NativeInstance("calm", Engine(model, **OPTIONS))], Rollout(), max_length=64)
    undisturbed = play(calm, lambda problem, sample: settled(RIGHT), lambda: None)
    expected = {group.problem.id: drawn(group) for group in undisturbed}
    workers, came, memory = Workers(model), Counter[str](), []
    before = num_open_files()
    try:
        for group in play(workers.fleet, workers.judge, workers.turn_ended):
            came[group.problem.id] += 1
            assert drawn(group) == expected[group.problem.id]
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    finally:
        workers.fleet.close()
    assert came == dict.fromkeys(expected, 1)
    assert workers.kills > 1 and workers.caught_at_work > 0
    assert not any(worker.process.is_alive() for worker in workers.pair)
    # Keys and values that a worker died before it took stay open; a run has few deaths, for none is replaced.
    assert num_open_files() <= before + workers.kills * OPTIONS["max_running"]
    if EPISODES >= 10_000:
        assert workers.kills > 30
        assert memory[-1] < memory[len(memory) // 2] + 20_000  # kB; the high-water mark is flat


@pytest.mark.usefixtures("forked_workers")
def test_when_the_last_worker_is_killed_episodes_stop_as_plain_samples_do() -> None:
    workers = Workers(random_model())

    def kill_all() -> None:
        for worker in workers.pair:
            assert worker.process.pid is not None
            os.kill(worker.process.pid, signal.SIGKILL)

    with pytest.raises(RunStopped, match="all engines' processes have ended and requests still wait"):
        [*play(workers.fleet, lambda problem, sample: settled(RIGHT), kill_all)]
    assert not workers.fleet.busy and not workers.fleet.instances
