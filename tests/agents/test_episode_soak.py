"""Many episodes with faults of every kind: none is lost, none comes twice, and nothing is left behind.

FORESAIL_EPISODE_SOAK=10000 runs so many; 240 in a normal run.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import threading
from collections import Counter
from functools import partial
from typing import Any

from small_worlds import TOKENIZER, answer, engine_of, problems, random_model, spec_of

from foresail.agents.environment import EnvironmentBroken, Observation
from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.recipe.tables.parts import Rollout
from foresail.records import FAILURES, Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rollout.build import gather
from foresail.rollout.instance import InstanceLost
from foresail.rollout.native import NativeInstance
from foresail.rollout.stream import sample_all

EPISODES = int(os.environ.get("FORESAIL_EPISODE_SOAK", "240"))
SAMPLES, MAX_TURNS = 3, 5
MODEL = random_model()


class Mortal(NativeInstance):
    """Dies at some poll, with everything it has."""

    def __init__(self, name: str, lifetime: int) -> None:
        super().__init__(name, engine_of(MODEL, num_pages=300, max_running=16))
        self.lifetime = lifetime

    def poll(self) -> Any:
        self.lifetime -= 1
        if self.lifetime < 0:
            raise InstanceLost(self.state.name)
        return super().poll()


class Faulty:
    """Answers, raises, hangs or takes its time; which of these follows from the problem and the turn."""

    async def reset(self, problem: Problem) -> None:
        self.problem = problem
        if random.Random(f"reset {problem.id}").random() < 0.01:
            raise OSError("no such corpus")

    async def step(self, response: str) -> Observation:
        fate = random.Random(f"fate {self.problem.id} {response}").random()
        if fate < 0.03:
            raise EnvironmentBroken("the server is gone")
        if fate < 0.05:
            raise KeyError("a mistake in the tool")
        if fate < 0.06:
            await asyncio.sleep(600)
        await asyncio.sleep(0.002 if fate < 0.5 else 0.0)
        return answer(self.problem, response)

    async def close(self) -> None:
        if random.Random(f"close {self.problem.id}").random() < 0.05:
            raise RuntimeError("cannot be closed")


def right(problem: Problem, sample: Sample) -> Any:
    return settled(Verdict(status="correct", score=1.0))


def test_a_soak_loses_doubles_and_leaves_nothing() -> None:
    numbers, wanted = random.Random(0), problems(EPISODES // SAMPLES)
    fleet = gather(
        [Mortal("0", 200), Mortal("1", 10**9)], Rollout(policy="context", chunk_tokens=8), max_length=64
    )
    environments = Environments(Faulty, step_seconds=3.0)
    stream = partial(EpisodeStream, environments=environments, tokenizer=TOKENIZER, max_turns=MAX_TURNS)
    came, statuses, deaths, memory = Counter[str](), Counter[str](), 0, []
    for group in sample_all(fleet, wanted, spec_of(SAMPLES), right, stream=stream):
        came[group.problem.id] += 1
        statuses.update(verdict.status for verdict in group.verdicts)
        for sample, verdict in zip(group.samples, group.verdicts, strict=True):
            assert len(sample.ids) == len(sample.loss_mask) == len(sample.turns)
            assert verdict.status in FAILURES or sample.finish in ("stop", "length")
        if len(fleet.instances) < 2:  # one has died: another takes its place
            deaths += 1
            fleet.add(Mortal(f"next {deaths}", numbers.randint(50, 400)))
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert came == dict.fromkeys((entry.problem.id for entry in wanted), 1)
    assert statuses["crashed"] > 0 and statuses["correct"] > EPISODES / 2
    assert not fleet.busy and len(fleet.pool) == 0 and fleet.scheduler.num_waiting == 0
    environments.close()
    assert not environments.by_id and not any(
        thread.name == "environments" for thread in threading.enumerate()
    )
    if EPISODES >= 10_000:
        assert statuses["timeout"] > 0 and deaths > 3
        assert memory[-1] < memory[len(memory) // 2] + 20_000  # kB; the high-water mark is flat
