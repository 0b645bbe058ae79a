"""Engines in processes of their own: same tokens, shared weights, and a death that loses nothing."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest
import torch
from tiny_rollouts import MAX_TOKENS, PROMPTS, STOP, small_engine, small_model, specs, whole_requests

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Parked
from foresail.model.weights import checksum
from foresail.recipe.tables.parts import Sampling
from foresail.records import Problem, Sample, Verdict
from foresail.rollout.collect import Collected, collect, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.instance import ChunkOrder, Instance, InstanceLost
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.plan import Dispatch
from foresail.rollout.policies import build_policy
from foresail.rollout.remote.worker import PipeChannel, WorkerInstance
from foresail.rollout.weights.sync import WeightsDiffer

OPTIONS = {"num_pages": 200, "page_size": 4}


def order(spec, work, generated: int, tokens: int, instance: WorkerInstance) -> ChunkOrder:
    limit = min(tokens, spec.max_tokens - generated)
    dispatch = Dispatch(spec=spec, instance=instance.name, generated=generated, max_tokens=limit)
    return ChunkOrder(dispatch=dispatch, work=work)


def run(
    instances: list[WorkerInstance], chunk: int, *, kill: WorkerInstance | None = None
) -> dict[str, list[int]]:
    """All requests in chunks, round robin; what a dead worker had is given to the others."""
    requests, drawn, turn = whole_requests(), {}, 0
    works: dict[str, Parked] = {}
    waiting = specs()
    lost: set[str] = set()
    deadline = time.monotonic() + 600
    while len(drawn) < len(requests):
        assert time.monotonic() < deadline, "the workers do not answer"
        alive = [instance for instance in instances if instance.name not in lost]
        for spec in waiting:
            parked = works.get(spec.id)
            generated = len(parked.ids) if parked else 0
            turn += 1
            target = alive[turn % len(alive)]
            # A dead one is found by the next poll, with this order among its own.
            with contextlib.suppress(InstanceLost):
                target.submit(order(spec, parked or requests[spec.id], generated, chunk, target))
        waiting = []
        if kill is not None and works:
            os.kill(kill.process.pid, signal.SIGKILL)
            kill = None
        for instance in alive:
            try:
                outcomes = instance.poll()
            except InstanceLost as gone:
                lost.add(gone.name)
                waiting += [dispatch.spec for dispatch in instance.running.values()]
                continue
            for outcome in outcomes:
                if outcome.event.finished:
                    drawn[outcome.event.spec.id] = outcome.completion.ids
                else:
                    works[outcome.event.spec.id] = outcome.parked
                    waiting.append(outcome.event.spec)
        time.sleep(0.002)
    return drawn


@pytest.fixture(scope="module")
def whole() -> dict[str, list[int]]:
    return {c.request.id: c.ids for c in small_engine(small_model()).generate(whole_requests().values())}


@pytest.mark.usefixtures("forked_workers")
def test_workers_draw_the_same_tokens_and_survive_each_other(whole):
    model = small_model()
    workers = [WorkerInstance(f"{n}", model, OPTIONS) for n in range(2)]
    try:
        assert workers[0].state.kv_tokens == 800
        assert run(workers, chunk=5) == whole
        assert run(workers, chunk=3, kill=workers[0]) == whole
        assert not workers[0].process.is_alive() and workers[1].process.is_alive()
        with torch.no_grad():
            model.embed.weight.mul_(1.5)
        workers[1].update_weights(1)
        changed = run([workers[1]], chunk=4)
        expected = {c.request.id: c.ids for c in small_engine(model).generate(whole_requests().values())}
        assert changed == expected != whole
        model.embed.weight.data = model.embed.weight.data * 2  # another tensor: the worker cannot see it
        with pytest.raises(WeightsDiffer, match="not updated in place"):
            workers[1].update_weights(2)
    finally:
        for worker in workers:
            worker.close()
    assert not any(worker.process.is_alive() for worker in workers)


class Process:
    """Of a worker, as far as the pipe's other end asks for it."""

    exitcode = None

    def __init__(self, *, alive: bool) -> None:
        self.alive = alive

    def join(self, timeout: float) -> None: ...

    def is_alive(self) -> bool:
        return self.alive


def open_pipe(*, alive: bool) -> tuple[PipeChannel, Connection]:
    channel = object.__new__(PipeChannel)
    channel.name, channel.process = "0", Process(alive=alive)
    channel.pipe, theirs = Pipe()
    return channel, theirs


def test_a_death_in_the_middle_of_a_message_is_a_death() -> None:
    message = pickle.dumps("a report of some length")
    for written in range(4 + len(message)):  # its length, and it: any part of that
        channel, theirs = open_pipe(alive=False)
        os.write(theirs.fileno(), (struct.pack("!i", len(message)) + message)[:written])
        theirs.close()
        with pytest.raises(InstanceLost):
            channel.receive(600)
        channel.pipe.close()


def test_what_a_process_said_before_it_died_is_heard_first() -> None:
    channel, theirs = open_pipe(alive=False)
    theirs.send(("failed", "no memory"))
    theirs.close()
    assert channel.receive(600) == [("failed", "no memory")]
    with pytest.raises(InstanceLost):
        channel.receive(600)
    channel.pipe.close()


def test_an_error_of_the_system_is_not_taken_for_a_death() -> None:
    channel, theirs = open_pipe(alive=True)
    channel.pipe.close()
    with pytest.raises(OSError, match="closed"):
        channel.receive(0)
    theirs.close()


def test_the_checksum_sees_every_bit():
    model = small_model()
    before = checksum(model)
    with torch.no_grad():
        first = model.embed.weight[0, 0].clone()
        model.embed.weight[0, 0] = torch.nextafter(first, torch.tensor(9.0))
        assert checksum(model) != before
        model.embed.weight[0, 0] = first
        assert checksum(model) == before
        model.embed.weight[[0, 1]] = model.embed.weight[[1, 0]].clone()
        assert checksum(model) != before


# A whole step.


def harvest_with(instances: Sequence[Instance], judge: Callable[[Problem, Sample], Future]) -> Collected:
    fleet = Fleet(instances, build_policy("context"), KVPool(10**6), chunk_tokens=4)
    problems = [
        PromptedProblem(problem=Problem(id=f"{n}", prompt=(), answer=""), ids=prompt)
        for n, prompt in enumerate(PROMPTS)
    ]
    group_spec = GroupSpec(
        sampling=Sampling(max_new_tokens=MAX_TOKENS), num_samples=4, stop_ids=(STOP,), seed=0, step=1
    )
    controller = Controller(num_groups=3, cap=len(problems))
    collected = collect(fleet, problems.__getitem__, group_spec, judge, controller=controller, usable=teaches)
    assert not fleet.open and len(fleet.pool) == 0 and fleet.scheduler.num_waiting == 0
    assert "worker" not in fleet.instances  # if there was one, it was found dead
    return collected


def drawn_by(collected: Collected) -> list[list[tuple]]:
    """All but log-probabilities, whose last bits depend on who else was in the batch."""
    return [
        [
            (group.problem.id, [sample.ids for sample in group.samples], group.verdicts, group.rewards)
            for group in groups
        ]
        for groups in (collected.launched, collected.chosen)
    ]


def verdict_on(sample: Sample) -> Verdict:
    """By its text alone: one in seven hangs, of the others every second is right."""
    if sum(sample.ids) % 7 == 0:
        return Verdict(status="timeout", score=0.0)
    score = float(len(sample.ids) % 2)
    return Verdict(status="correct" if score else "wrong", score=score)


def test_a_step_survives_a_killed_process_and_a_judge_that_hangs() -> None:
    def judge_at_once(problem: Problem, sample: Sample) -> Future:
        judging: Future = Future()
        judging.set_result(verdict_on(sample))
        return judging

    def judge_and_kill(problem: Problem, sample: Sample) -> Future:
        handed_over.append(problem.id)
        if len(handed_over) == 1:
            os.kill(
                worker.process.pid, signal.SIGINT
            )  # Ctrl-C reaches all processes, and is not for this one
        if len(handed_over) == 2:
            os.kill(worker.process.pid, signal.SIGKILL)
        judging: Future = Future()
        verdict = verdict_on(sample)
        hangs = verdict.status == "timeout"
        threading.Timer(0.5 if hangs else 0.0, lambda: judging.set_result(verdict)).start()
        return judging

    handed_over: list[str] = []
    model = small_model()
    undisturbed = harvest_with([NativeInstance("engine", small_engine(model))], judge_at_once)
    assert any(group.failed for group in undisturbed.launched) and undisturbed.chosen
    other = NativeInstance("other", small_engine(model, max_running=3))
    worker = WorkerInstance("worker", model, OPTIONS | {"max_running": 3})
    try:
        assert drawn_by(harvest_with([worker, other], judge_and_kill)) == drawn_by(undisturbed)
        assert not worker.process.is_alive()
    finally:
        worker.process.kill()
