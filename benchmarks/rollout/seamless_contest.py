"""Naive dynamic sampling against the seamless controller, with programs, a real judge, and replayed responses."""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from code_sets import read_rows
from mutants import mutate
from replay import DATA, END, SAMPLES, Script, dictate, draw_for, number_densely, read_scripts
from tokenizers import Tokenizer

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.recipe.tables.parts import Rollout
from foresail.recipe.tables.reward import Code, Reward
from foresail.records import Group, Message, Problem, Sample, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.grading import Grading
from foresail.rewards.group_rewards import right_or_wrong
from foresail.rollout.build import gather
from foresail.rollout.collect import collect, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, requests, to_sample, to_spec
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.policies import build_policy

VISIT = 10  # of DeepScaleR's history: which group of 8 says how many samples are right
Figures = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One step: how long it took and what it launched."""

    seconds: float
    launched: int
    valid: int


def measure_seamless(engine: Engine, tokenizer: Tokenizer, options: argparse.Namespace) -> Figures:
    engine.weights_changed(engine.version + 1)
    scripts, tokens = number_densely(write_programs(tokenizer, options))
    draw = draw_for(scripts)
    dictate(engine, scripts, draw)
    reward = Reward(grader="code", workers=options.graders, code=Code(seconds=2.0))
    print(
        f"dynamic sampling: {options.wanted} groups wanted, {len(scripts)} problems, {options.graders} graders"
    )
    figures: Figures = {"wanted": options.wanted, "graders": options.graders, "sides": {}}
    share = 1.0
    with open_grading(reward) as grading:
        judge = Judge(tokenizer, tokens, grading)
        _, share = seamless(
            engine, deal(scripts, -1), draw, judge, max(2, options.wanted // 4), share
        )  # warm
        for step in range(options.steps):
            batch, wanted = deal(scripts, step), options.wanted
            ours, share = seamless(engine, batch, draw, judge, wanted, share)
            note(figures, "seamless", ours)
            everybody = len(batch) * SAMPLES
            note(
                figures,
                "naive, graded by a pool",
                naive(engine, batch, draw, judge, wanted, at_once=everybody),
            )
            note(figures, "naive, graded one by one", naive(engine, batch, draw, judge, wanted, at_once=1))
    for name, steps in figures["sides"].items():
        figures[name] = round(sum(step["seconds"] for step in steps), 3)
    for name in ("naive, graded one by one", "naive, graded by a pool"):
        figures[f"speedup against {name}"] = round(figures[name] / figures["seamless"], 3)
        print(f"  seamless against {name}: {figures[name] / figures['seamless']:.2f}x")
    return figures


def note(figures: Figures, name: str, outcome: Outcome) -> None:
    print(
        f"  {name:26}{outcome.seconds:8.2f} s, {outcome.launched} groups launched, {outcome.valid} valid",
        flush=True,
    )
    figures["sides"].setdefault(name, []).append(asdict(outcome))


def naive(
    engine: Engine, scripts: Sequence[Script], draw: GroupSpec, judge: Judge, wanted: int, *, at_once: int
) -> Outcome:
    """Batches of the wanted size, each drawn to the end and then graded, until there are enough valid groups."""
    fleet = whole_groups(engine)
    start, launched, valid = time.perf_counter(), 0, 0
    while valid < wanted and launched < len(scripts):
        batch = scripts[launched : launched + wanted]
        samples = draw_batch(fleet, batch, draw, launched)
        valid += sum(teaches(group) for group in grade_batch(batch, samples, judge, at_once))
        launched += len(batch)
    return Outcome(seconds=time.perf_counter() - start, launched=launched, valid=valid)


def whole_groups(engine: Engine) -> Fleet:
    instance = NativeInstance("engine", engine)
    return Fleet([instance], build_policy("group"), KVPool(0), chunk_tokens=None)


def draw_batch(fleet: Fleet, batch: Sequence[Script], draw: GroupSpec, first: int) -> list[dict[int, Sample]]:
    samples: list[dict[int, Sample]] = [{} for _ in batch]
    for number, script in enumerate(batch, start=first):
        group = requests(script.problem, draw, number)
        fleet.launch([to_spec(request, number, place) for place, request in enumerate(group)], group)
    while fleet.busy:
        for spec, completion in fleet.work():
            samples[spec.group - first][spec.sample] = to_sample(completion)
    return samples


def grade_batch(
    batch: Sequence[Script], samples: list[dict[int, Sample]], judge: Judge, at_once: int
) -> list[Group]:
    """With so many responses at the graders at a time."""
    jobs = [
        (script.problem.problem, group[place])
        for script, group in zip(batch, samples, strict=True)
        for place in range(SAMPLES)
    ]
    verdicts: list[Verdict] = []
    for first in range(0, len(jobs), at_once):
        under_way = [judge(*job) for job in jobs[first : first + at_once]]
        verdicts += [future.result() for future in under_way]
    return [
        to_group(script.problem.problem, group, tuple(verdicts[SAMPLES * number : SAMPLES * (number + 1)]))
        for number, (script, group) in enumerate(zip(batch, samples, strict=True))
    ]


def to_group(problem: Problem, by_place: dict[int, Sample], verdicts: tuple[Verdict, ...]) -> Group:
    samples = tuple(by_place[place] for place in range(SAMPLES))
    rewards = right_or_wrong(problem, samples, verdicts)
    return Group(problem=problem, samples=samples, verdicts=verdicts, rewards=rewards)


def seamless(
    engine: Engine, scripts: Sequence[Script], draw: GroupSpec, judge: Judge, wanted: int, share: float
) -> tuple[Outcome, float]:
    """The step as `foresail rl` takes it; with it, the share of valid groups for the next one."""
    instance = NativeInstance("engine", engine)
    fleet = gather([instance], Rollout(), max_length=engine.model.shape.max_context)
    start = time.perf_counter()
    collected = collect(
        fleet,
        lambda launch: scripts[launch].problem,
        draw,
        judge,
        controller=Controller(num_groups=wanted, cap=len(scripts), share_before=share),
        usable=teaches,
    )
    outcome = Outcome(
        seconds=time.perf_counter() - start,
        launched=fleet.next_group,
        valid=len(collected.chosen) + collected.num_surplus,
    )
    return outcome, collected.share


class Judge:
    """Hands a response's text to the graders."""

    def __init__(self, tokenizer: Tokenizer, tokens: Sequence[int], grading: Grading) -> None:
        self.tokenizer, self.tokens, self.grading = tokenizer, tokens, grading

    def __call__(self, problem: Problem, sample: Sample) -> Future[Verdict]:
        drawn = [self.tokens[id] for id, mask in zip(sample.ids, sample.loss_mask, strict=True) if mask]
        return self.grading.submit(problem, single_turn(self.tokenizer.decode(drawn)))


# What is drawn.


def deal(scripts: Sequence[Script], step: int) -> list[Script]:
    """The order of a step, which all sides share."""
    return random.Random(step).sample(scripts, len(scripts))


def write_programs(tokenizer: Tokenizer, options: argparse.Namespace) -> list[Script]:
    """For each problem eight responses: recorded reasoning, then a program, right as often as in a real group."""
    numbers, reasoning, counts = random.Random(0), read_scripts(options.traces[0], tokenizer), right_counts()
    rows = [row for row in read_rows("leetcodedataset/v0.2.0-train") if len(wrong_programs(row)) > 3]
    scripts = []
    for number, row in enumerate(random.Random(1).sample(rows, min(len(rows), 5 * options.wanted))):
        right = numbers.choice(counts)
        programs = [row["completion"]] * right + numbers.choices(wrong_programs(row), k=SAMPLES - right)
        numbers.shuffle(programs)
        texts = [tokenizer.encode(f"\n```python\n{program}\n```").ids for program in programs]
        thoughts = reasoning[number % len(reasoning)].responses
        responses = [[*thought[:-1], *text, END] for thought, text in zip(thoughts, texts, strict=True)]
        scripts.append(Script(problem=to_problem(row, tokenizer), responses=responses))
    return scripts


def right_counts() -> list[int]:
    """How many of 8 samples were right, over the problems of a real run."""
    file = DATA / "math/deepscaler_sub1209/acc_step_500.json.gz"
    rates = json.loads(gzip.decompress(file.read_bytes()))
    return [round(SAMPLES * history[VISIT]) for history in rates.values() if len(history) > VISIT]


def wrong_programs(row: dict[str, Any]) -> list[str]:
    """Most of them are wrong."""
    return [mutant.source for mutant in mutate(row["completion"])[:8]]


def to_problem(row: dict[str, Any], tokenizer: Tokenizer) -> PromptedProblem:
    problem = Problem(
        id=row["task_id"],
        prompt=(Message(role="user", content=row["prompt"]),),
        answer="",
        extra={"test": row["test"], "entry_point": row["entry_point"]},
    )
    return PromptedProblem(problem=problem, ids=tuple(tokenizer.encode(row["prompt"]).ids[:1024]))
