"""Episodes per second where a tool takes 0 to 2 seconds, against a loop that waits for each batch's slowest.

Both sides play the same episodes on the same engine with the same rows: a random model speaks, the tool answers
after a time that follows from the episode and the turn, for 1 to 8 turns. The loop takes as many episodes as the
engine has rows, lets all of them finish their turn, waits for all tools, and begins the next batch when the last
episode of this one has ended. The stream is Foresail's own: a turn that waits has no slot. That both gave the same
tokens is checked, and how many tokens were computed for prompts is counted.

Then the simulator is asked what the stream should have taken: it gets the same turns and the same tools' times, and
steps that cost what the engine's steps cost when measured alone.

    python benchmarks/agents/episodes.py
    python benchmarks/agents/episodes.py --device cuda --rows 256 --episodes 2048
The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from foresail.agents.environment import Observation
from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Request
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Rollout, Sampling
from foresail.records import Message, Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, continue_request, requests, to_sample
from foresail.rollout.native import NativeInstance
from foresail.rollout.stream import sample_all
from foresail.simulate.costs import MeasuredStep, StepCost, fit
from foresail.simulate.settings import Machines, Simulation
from foresail.simulate.settings import Rollout as SimulatedRollout
from foresail.simulate.step import SimulatedStep
from foresail.simulate.tools import SimulatedTurn, Tools
from foresail.simulate.workloads import GroupOutcome, Problems, Workload
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

SAMPLES, MOST_TURNS, SLOWEST, MAX_NEW, PAGE = 4, 8, 2.0, 512, 16
TIMED_STEPS, MOST_TIMED = 40, 256
STOPS = tuple(range(100, 116))  # of some 280 tokens: turns of about 17


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=256)
    parser.add_argument(
        "--rows", type=int, default=32, help="decoded at once, and episodes in a batch of the loop"
    )
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = train_bpe(["tool says 0123456789"], vocab_size=280)
    problems = make_problems(options.episodes // SAMPLES, tokenizer)
    figures: dict[str, Any] = vars(options) | {"seconds_of_a_tool": [0.0, SLOWEST], "turns": [1, MOST_TURNS]}
    samples = {}
    for name, play in (("stream", play_stream), ("loop", play_loop)):
        engine = build(tokenizer, options.rows, options.device)
        computed = count_prompt_tokens(engine)
        start = time.perf_counter()
        samples[name] = play(engine, problems, tokenizer)
        seconds = time.perf_counter() - start
        figures[name] = {
            "seconds": round(seconds, 2),
            "episodes_per_second": round(len(samples[name]) / seconds, 2),
            "prompt_tokens_computed": sum(computed),
        }
        print(name, figures[name], flush=True)
    assert samples["stream"] == samples["loop"], "the two sides played other episodes"
    counts = [sample.turns[-1] + 1 for sample in samples["loop"].values()]
    figures["turns_mean"] = sum(counts) / len(counts)
    steps = fit(measure_steps(build(tokenizer, MOST_TIMED, options.device), options.rows))
    seconds = simulate_stream(samples["stream"], problems, tokenizer, steps.cost, options.rows)
    measured = figures["stream"]["seconds"]
    figures["simulated"] = {
        "seconds": round(seconds, 2),
        "off": f"{seconds / measured - 1:+.1%}",
        "steps_off_mean": f"{steps.mean_error:.1%}",
    }
    print("simulated", figures["simulated"], flush=True)
    figures["ratio"] = round(figures["loop"]["seconds"] / figures["stream"]["seconds"], 2)
    print(json.dumps(figures))


def build(tokenizer: Tokenizer, rows: int, device: str) -> Engine:
    shape = ModelShape(
        vocab_size=tokenizer.vocab_size, hidden_size=64, intermediate_size=128, num_layers=2, num_heads=4,
        num_kv_heads=2, head_dim=16, max_context=1024,
    )  # fmt: skip
    model = build_model(shape, seed=0, device=device)
    return Engine(model, num_pages=cache_tokens(rows) // PAGE, page_size=PAGE, max_running=rows)


def cache_tokens(rows: int) -> int:
    return 2 * rows * (MAX_NEW + 64)


def count_prompt_tokens(engine: Engine) -> list[int]:
    """Filled while the engine works: tokens of every pass over prompts."""
    counts: list[int] = []
    fill = engine.runner.fill

    def counting(chunks: Sequence[Any]) -> None:
        counts.append(sum(len(chunk.tokens) for chunk in chunks))
        fill(chunks)

    engine.runner.fill = counting  # type: ignore[method-assign]
    return counts


def make_problems(count: int, tokenizer: Tokenizer) -> list[PromptedProblem]:
    return [
        PromptedProblem(
            problem=Problem(id=f"p{n}", prompt=(Message(role="user", content=f"{n}"),), answer=""),
            ids=tuple(tokenizer.encode(f"tool {n} " * 8)),
        )
        for n in range(count)
    ]


def spec() -> GroupSpec:
    sampling = Sampling(max_new_tokens=MAX_NEW)
    return GroupSpec(sampling=sampling, num_samples=SAMPLES, stop_ids=STOPS, seed=0, step=1)


# The tool: its answer, its time, and the end of an episode follow from the message it gets.


def answer(problem: Problem, response: str) -> tuple[Observation, float]:
    numbers = random.Random(f"{problem.id} {response}")
    done = numbers.random() < 1 / 4
    return Observation(text=f"says {numbers.randrange(10**6)}", done=done), numbers.random() * SLOWEST


class Tool:
    async def reset(self, problem: Problem) -> None:
        self.problem = problem

    async def step(self, response: str) -> Observation:
        observation, seconds = answer(self.problem, response)
        await asyncio.sleep(seconds)
        return observation

    async def close(self) -> None: ...


@dataclass(frozen=True)
class PlayedSample:
    """Log-probabilities are left out: their last bits depend on who shared a batch."""

    ids: list[int]
    turns: list[int]
    loss_mask: list[int]


Played = dict[str, PlayedSample]  # by problem and sample


def play_stream(engine: Engine, problems: list[PromptedProblem], tokenizer: Tokenizer) -> Played:
    fleet: Fleet = gather([NativeInstance("engine", engine)], Rollout(), max_length=MAX_NEW + 64)
    environments = Environments(Tool, step_seconds=600)
    stream = partial(EpisodeStream, environments=environments, tokenizer=tokenizer, max_turns=MOST_TURNS)
    played = {}
    for group in sample_all(fleet, problems, spec(), right, stream=stream):
        for number, sample in enumerate(group.samples):
            played[f"{group.problem.id}.{number}"] = without_logprobs(sample)
    environments.close()
    return played


def right(problem: Problem, sample: Sample) -> Future[Verdict]:
    return settled(Verdict(status="correct", score=1.0))


def play_loop(engine: Engine, problems: list[PromptedProblem], tokenizer: Tokenizer) -> Played:
    """Batch after batch, turn after turn."""
    waiting = [
        (entry.problem, f"{entry.problem.id}.{number}", request)
        for group, entry in enumerate(problems)
        for number, request in enumerate(requests(entry, spec(), group))
    ]
    rows = len(engine.table.lengths_S)
    played = {}
    for first in range(0, len(waiting), rows):
        batch = waiting[first : first + rows]
        turns: dict[str, list[Completion]] = {name: [] for _, name, _ in batch}
        under_way = {request.id: (problem, name, request) for problem, name, request in batch}
        while under_way:
            ended = [*engine.generate([request for _, _, request in under_way.values()])]
            answers = []
            for completion in ended:
                problem, name, _ = under_way[completion.request.id]
                turns[name].append(completion)
                answers.append(answer(problem, tokenizer.decode(completion.ids, skip_special_tokens=True)))
            asked = [
                seconds
                for completion, (_, seconds) in zip(ended, answers, strict=True)
                if completion.finish != "length"
            ]
            time.sleep(max(asked, default=0.0))
            following = {}
            for completion, (observation, _) in zip(ended, answers, strict=True):
                problem, name, _ = under_way[completion.request.id]
                longer = go_on(completion, observation, len(turns[name]), tokenizer)
                if longer is not None:
                    following[longer.id] = problem, name, longer
            under_way = following
        for name, parts in turns.items():
            played[name] = without_logprobs(to_sample(*parts))
    return played


def without_logprobs(sample: Sample) -> PlayedSample:
    return PlayedSample(sample.ids, sample.turns, sample.loss_mask)


def go_on(
    completion: Completion, observation: Observation, turns: int, tokenizer: Tokenizer
) -> Request | None:
    if completion.finish == "length" or observation.done or turns == MOST_TURNS:
        return None
    ids = tokenizer.encode_text(observation.text)
    left = completion.request.sampling.max_new_tokens - len(completion.ids) - len(ids)
    return continue_request(completion, ids) if left > 0 else None


# What the simulator says to it.


def measure_steps(engine: Engine, max_rows: int) -> list[MeasuredStep]:
    """Steps with 1 to `most` rows, and wide ones, by which prompts are priced; each by the best of three."""
    steps = []
    for rows in sorted({1, max_rows // 2, max_rows, MOST_TIMED // 2, MOST_TIMED} - {0}):
        for context in (16, 256):
            seconds = min(time_steps(engine, rows, context) for _ in range(3))
            middle = context + TIMED_STEPS / 2
            steps.append(
                MeasuredStep(batch=rows, draft_length=0, context=middle, milliseconds=1000 * seconds)
            )
    return steps


def time_steps(engine: Engine, rows: int, context: int) -> float:
    """Seconds of a step while so many rows decode; filling their prompts is left out."""
    sampling = Sampling(max_new_tokens=TIMED_STEPS + 1)
    for row in range(rows):
        engine.add(Request(id=f"{row}", prompt=(row + 1,) * context, key=row, sampling=sampling))
    while len(engine.slots) < rows:
        engine.step()
    start, steps = time.perf_counter(), 0
    while len(engine.slots) == rows:
        engine.step()
        steps += 1
    seconds = time.perf_counter() - start
    while engine.busy:
        engine.step()
    return seconds / steps


class Recorded(Problems):
    """Groups as they were played."""

    def __init__(self, workload: Workload, groups: Sequence[GroupOutcome]) -> None:
        super().__init__(workload, seed=0, step=0)
        self._groups = dict(enumerate(groups))


def simulate_stream(
    played: Played, problems: list[PromptedProblem], tokenizer: Tokenizer, cost: StepCost, rows: int
) -> float:
    """Seconds of the same episodes on one simulated engine."""
    groups = [
        GroupOutcome(
            turns=tuple(
                to_turns(played[f"{entry.problem.id}.{number}"], entry.problem, tokenizer)
                for number in range(SAMPLES)
            ),
            right=(True,) * SAMPLES,
            grading_seconds=0.0,
        )
        for entry in problems
    ]
    workload = Workload(
        groups=len(groups),
        samples=SAMPLES,
        mean_tokens=1,
        max_tokens=MAX_NEW // MOST_TURNS,  # of a turn, were all alike: the limit is of the whole
        prompt_tokens=len(problems[0].ids),
        tools=Tools(mean_turns=1, max_turns=MOST_TURNS, tokens=1),
    )
    simulation = Simulation(
        cluster=small_cache(Machines(instances=1, max_running=rows, kv_bytes=10**6), cache_tokens(rows)),
        workload=workload,
        rollout=SimulatedRollout(policy="group", chunk_tokens=None),  # what `auto` is on one engine
    )
    return SimulatedStep(simulation, cost, Recorded(workload, groups), 1.0).run().seconds


def small_cache(machines: Machines, tokens: int) -> Machines:
    """With weights so large that this much room is left."""
    free = machines.kv_tokens * machines.kv_bytes / 1e9 + machines.weight_gb
    return machines.model_copy(update={"weight_gb": free - tokens * machines.kv_bytes / 1e9})


def to_turns(sample: PlayedSample, problem: Problem, tokenizer: Tokenizer) -> tuple[SimulatedTurn, ...]:
    """The tool is asked once more what it says, and how long that takes."""
    turns: list[SimulatedTurn] = []
    for number in range(sample.turns[-1] + 1):
        mine = [
            (token, drawn)
            for token, turn, drawn in zip(sample.ids, sample.turns, sample.loss_mask, strict=True)
            if turn == number
        ]
        drawn = [token for token, mask in mine if mask]
        if turns:  # what stands before the first token of this turn is the tool's answer
            turns[-1] = turns[-1]._replace(tool_tokens=len(mine) - len(drawn))
        seconds = answer(problem, tokenizer.decode(drawn, skip_special_tokens=True))[1]
        turns.append(SimulatedTurn(len(drawn), 0, seconds))
    return tuple(turns)


if __name__ == "__main__":
    main()
