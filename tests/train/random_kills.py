"""A run of which rollout engines and graders are killed at random moments, for tests and for the long attack.

python tests/train/random_kills.py --kills 200              # engines are worker processes
python tests/train/random_kills.py --kills 200 --kind ray   # engines are Ray actors
python tests/train/random_kills.py --kills 200 --kind ray --grader-hosts 1   # and so is who holds the graders
python tests/train/random_kills.py --kills 200 --staleness 1   # that draw while the trainer updates
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import torch.multiprocessing as processes
from command_line import servers
from small_runs import train, weights

from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Engine, Rollout
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward
from foresail.rewards import build as rewards_build
from foresail.rewards import ray_hosts
from foresail.rewards.pool import GradingPool
from foresail.rewards.ray_hosts import RayHost
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet, RequestEnded
from foresail.runlog.directory import RunDirectory
from foresail.train.rollouts import setup as rollout_setup
from foresail.train.session import Outcome

SAMPLES_BETWEEN_KILLS = (6, 18)
REWARD = """import time
def score(data_source, solution_str, ground_truth, extra_info=None):
    time.sleep(0.002)
    return float(ground_truth in solution_str)
"""


class Killer:
    """Every few samples a thread kills one of the run's processes, whatever it is doing a moment later.

    At least one engine is left: the run would only wait for another. A grader is left alone while a verdict is
    tried for the second time: a verdict whose process dies twice is a failure and drops its group.
    """

    def __init__(self, seed: int) -> None:
        self.numbers, self.killed = random.Random(seed), Counter[str]()
        self.fleet: Fleet | None = None
        self.pools: list[GradingPool] = []
        self.hosts: list[RayHost] = []  # of graders, as they were started
        self.samples_left, self.thread = 1, threading.Thread()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Of every run inside: its fleet and its grading pools."""

        def build_watched(*arguments: Any, **options: Any) -> Fleet:
            self.fleet = build_fleet(*arguments, **options)
            work = self.fleet.work
            self.fleet.work = lambda: self.noted(work())  # type: ignore[method-assign]
            return self.fleet

        def open_watched(*arguments: Any, **options: Any) -> GradingPool:
            self.pools.append(GradingPool(*arguments, **options))
            return self.pools[-1]

        def start_watched(*arguments: Any) -> RayHost:
            self.hosts.append(RayHost(*arguments))
            return self.hosts[-1]

        with (
            patch.object(rollout_setup, "build_fleet", build_watched),
            patch.object(ray_hosts, "RayHost", start_watched),
            patch.object(rewards_build, "GradingPool", open_watched),
        ):
            yield

    def noted(self, ended: list[RequestEnded]) -> list[RequestEnded]:
        self.samples_left -= len(ended)
        if self.samples_left <= 0 and not self.thread.is_alive():
            self.samples_left = self.numbers.randint(*SAMPLES_BETWEEN_KILLS)
            kinds = [kind for kind in ("engine", "grader", "host") if any(self.victims(kind))]
            if kinds:
                kind, delay = self.numbers.choice(kinds), self.numbers.uniform(0, 0.01)
                self.thread = threading.Thread(target=self.kill, args=(kind, delay))
                self.thread.start()
        return ended

    def kill(self, kind: str, delay: float) -> None:
        time.sleep(delay)
        victims = [process for process in self.victims(kind) if process]
        if victims:
            with suppress(ProcessLookupError):
                os.kill(self.numbers.choice(victims), signal.SIGKILL)
                self.killed[kind] += 1

    def victims(self, kind: str) -> Iterator[int]:
        if kind == "engine":
            assert self.fleet is not None
            alive = [*self.fleet.instances.values()]
            yield from (process_of(instance) for instance in alive if len(alive) > 1)
        if kind == "host" and self.hosts:
            yield actor_process(self.hosts[-1].actor)
        for pool in self.pools if kind == "grader" else ():
            workers = [*pool._workers]
            jobs = [*pool._queue, *(worker.job for worker in workers if worker.job is not None)]
            if not any(job.deaths for job in jobs):
                yield from (worker.process.pid for worker in workers)


def process_of(instance: Any) -> int:
    if hasattr(instance, "process"):
        return int(instance.process.pid)
    return actor_process(instance.channel.actor)


def actor_process(actor: Any) -> int:
    """It is in Ray's own books; 0: not started yet."""
    from ray._private.state import actors

    return int(actors(actor._actor_id.hex())["Pid"])


def run(checkpoint: Path, root: Path, *, steps: int, **changes: Any) -> Outcome:
    file = root.parent / "kill_rewards.py"  # one for all runs: verdicts name it
    file.write_text(REWARD)
    outcome, _ = train(
        checkpoint,
        root,
        steps=steps,
        engine=Engine(batch_invariant=True),
        reward=Reward(grader=f"{file}:score", workers=2),
        **changes,
    )
    return outcome


def samples(outcome: Outcome, steps: int) -> list[list[dict[str, Any]]]:
    """Of every step all that is known of a sample, but for when it was drawn and graded."""
    return [RunDirectory(outcome.run).read_rollouts(step) for step in range(1, steps + 1)]


def compare(calm: Outcome, disturbed: Outcome, steps: int) -> None:
    for step, (expected, found) in enumerate(
        zip(samples(calm, steps), samples(disturbed, steps), strict=True), 1
    ):
        assert len(found) == len(expected), f"step {step}: {len(found)} samples, not {len(expected)}"
        assert found == expected, f"step {step}: another sample"
    assert torch.equal(weights(disturbed.checkpoint), weights(calm.checkpoint)), "other weights"


def attack(
    checkpoint: Path, folder: Path, *, steps: int, seed: int, staleness: int = 0, **changes: Any
) -> Killer:
    """A calm run, in one process if that goes, and one with kills: the same samples, the same weights."""
    common = {"loss": Loss(old_logprobs="trainer", importance_cap=2.0)} if staleness else {}
    alone = Rollout(workers=staleness, staleness=staleness)
    calm, killer = run(checkpoint, folder / "calm", steps=steps, rollout=alone, **common), Killer(seed)
    rollout = changes.pop("rollout").model_copy(update={"staleness": staleness})
    with killer.watching():
        disturbed = run(checkpoint, folder / "disturbed", steps=steps, rollout=rollout, **common, **changes)
    compare(calm, disturbed, steps)
    return killer


def main() -> None:
    from tiny_world import make_tokenizer, sft_recipe, write_conversations

    from foresail.train.stages.sft import run_sft

    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kind", choices=["local", "ray"], default="local")
    parser.add_argument("--grader-hosts", type=int, default=0, help="of Ray")
    parser.add_argument("--steps", type=int, default=20, help="of a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--staleness", type=int, default=0, choices=[0, 1])
    arguments = parser.parse_args()
    processes.get_context = lambda _method: servers()  # forks: a worker is there in a moment
    apart = (
        {"placement": "separate", "worker_cpus": 0.5}
        if arguments.staleness and arguments.kind == "ray"
        else {}
    )
    cluster = Cluster(kind=arguments.kind, grader_hosts=arguments.grader_hosts, grader_cpus=1, **apart)
    killed, rounds = Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_tokenizer().save(root / "tokenizer")
        conversations = write_conversations(root / "sft.jsonl")
        checkpoint = run_sft(sft_recipe(root / "tokenizer", conversations, root / "runs")).checkpoint
        while killed.total() < arguments.kills:
            (root / str(rounds)).mkdir()
            found = attack(
                checkpoint,
                root / str(rounds),
                steps=arguments.steps,
                seed=arguments.seed + rounds,
                rollout=Rollout(workers=2, chunk_tokens=4),
                cluster=cluster,
                staleness=arguments.staleness,
            )
            killed += found.killed
            rounds += 1
            print(json.dumps({"rounds": rounds, **killed}), flush=True)
    print(
        json.dumps(
            {"kills": killed.total(), "by_kind": killed, "runs": rounds, "same_samples_and_weights": True}
        )
    )


if __name__ == "__main__":
    main()
