"""Builds the grading that a recipe asks for: in this process, or in a pool of processes on one or several hosts.

    with open_grading(Reward(grader="rewards.py:score")) as grading:
        verdict = grading.submit(problem, trajectory).result()

`math`, `exact`, `qa` and `structured` take microseconds, less than sending a response to another process. Code and
a user's functions may hang or crash, so they run in processes that can be killed; a lambda, a method or a
notebook's function stays in this process.
"""

from __future__ import annotations

import os
from pathlib import Path

from foresail.chat.answering import Answer
from foresail.chat.open_endpoint import open_endpoint
from foresail.recipe.reward_function import can_travel, given_by_program, how_to_give, name_of
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.reward import JUDGE, MODEL, Reward
from foresail.rewards.grader import find_grader
from foresail.rewards.grading import Grading, InlineGrading
from foresail.rewards.judge_grading import JudgeGrading, OpenAnswer
from foresail.rewards.pool import GradingPool
from foresail.rewards.print_log import PrintLog
from foresail.rewards.ray_hosts import GraderHosts
from foresail.rewards.side_grading import SideGrading
from foresail.rewards.verdict_cache import CachedGrading


def open_server(settings: Answerer) -> Answer:
    """Who judges, where nobody gives the engine that a checkpoint needs."""
    if settings.endpoint is None:
        raise ValueError(
            f"{settings.checkpoint} judges in the native engine, which this command does not have; give the judge "
            "an endpoint"
        )
    return open_endpoint(settings)


def open_grading(
    settings: Reward,
    *,
    prints: Path | None = None,
    hosts: GraderHosts | None = None,
    device: str = "auto",
    open_answer: OpenAnswer = open_server,
) -> Grading:
    """The open grading; a ValueError where its grader cannot be loaded.

    `prints` is the file for what reward functions print; without it, processes print to stderr. `hosts` grade what
    would be graded in a pool of this one. `device` is where a reward model is. `open_answer` opens a judge.
    """
    named = {key: name for key, name in settings.functions.items() if isinstance(name, str)}
    if missing := {
        key: name for key, name in named.items() if given_by_program(name)
    }:  # as recipe.toml has it
        raise ValueError(how_to_give(missing))
    if settings.asks_judge or settings.asks_model:
        return open_side_grading(settings, prints=prints, hosts=hosts, device=device, open_answer=open_answer)
    grader = find_grader(settings)
    workers = choose_workers(settings, cores=count_cores() if hosts is None else hosts.cpus)
    graders = (settings.grader, *(term.grader for term in settings.terms))
    usual = 3600.0 if "code" in graders else 60.0  # the tests of a program have limits of their own
    seconds = settings.time_limit or usual
    log = PrintLog(prints) if prints is not None and settings.functions else None
    grading: Grading = InlineGrading(grader, prints=log)
    if workers and hosts is not None:
        grading = hosts.open(grader, workers=workers, seconds=seconds)
    elif workers:
        grading = GradingPool(grader, workers=workers, seconds=seconds, prints=log)
    try:
        grading.check()
    except BaseException:
        grading.close()
        raise
    # terms may tell two responses apart that hold the same program
    return CachedGrading(grading) if settings.grader == "code" and not settings.terms else grading


def open_side_grading(
    settings: Reward,
    *,
    prints: Path | None,
    hosts: GraderHosts | None,
    device: str,
    open_answer: OpenAnswer,
) -> Grading:
    """A judge, or else a reward model, with the other parts of the reward."""
    remaining = settings.without(JUDGE if settings.asks_judge else MODEL)
    others = None
    if remaining is not None:
        others = open_grading(remaining, prints=prints, hosts=hosts, device=device, open_answer=open_answer)
    grading: SideGrading
    if settings.asks_judge:
        grading = JudgeGrading(settings, others, open_answer=open_answer)
    else:
        from foresail.rewards.model_grading import ModelGrading  # the only grader that needs torch

        grading = ModelGrading(settings, others, device=device)
    try:
        grading.check()
    except BaseException:
        grading.close()
        raise
    return grading


def choose_workers(settings: Reward, cores: int) -> int:
    """Grading processes of a host; 0 for quick graders, and for functions that only this process has."""
    stay = [name_of(function) for function in settings.functions.values() if not can_travel(function)]
    if stay and settings.workers:
        raise ValueError(
            f"reward.workers = {settings.workers}: no other process can import {', '.join(stay)}; define it in a "
            "module or a file of its own, or set reward.workers = 0"
        )
    if settings.workers is not None:
        return settings.workers
    return 0 if stay or settings.is_quick else cores


def count_cores() -> int:
    """Cores that this process may use, which in a container are often fewer than the machine's."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
