"""Whole groups against context-aware scheduling and grouped drafts, on one engine that replays a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replay import SAMPLES, Script, dictate, draw_for, longest, number_densely

from foresail.engine.engine import Engine
from foresail.rollout.drafts.step_clock import usual
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, requests, to_spec
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy

HOST_BYTES = 32 * 2**30
Figures = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Side:
    """How a rollout is scheduled, and whether it drafts."""

    name: str
    policy: str
    chunk: int | None
    instance: type[NativeInstance]


def measure_replay(engine: Engine, scripts: list[Script], budgets: Sequence[int], chunk: int) -> Figures:
    scripts, _ = number_densely(scripts)
    draw = draw_for(scripts)
    dictate(engine, scripts, draw)
    sides = [
        Side(name="group", policy="group", chunk=None, instance=NativeInstance),
        Side(name="group + drafts", policy="group", chunk=None, instance=DraftingInstance),
        Side(name="context", policy="context", chunk=chunk, instance=NativeInstance),
        Side(name="context + drafts", policy="context", chunk=chunk, instance=DraftingInstance),
    ]
    tokens = sum(len(response) for script in scripts for response in script.responses)
    print(f"replay: {len(scripts)} problems x {SAMPLES}, {tokens:,} tokens, the longest {longest(scripts):,}")
    # The largest budget has batches of all sizes: graphs, kernels and the clock are ready after it.
    warm = run_side(engine, sides[-1], scripts, draw, max(budgets))[0]
    figures: Figures = {"tokens": tokens, "budgets": {}}
    for budget in budgets:
        rows = figures["budgets"][budget] = {}
        for side in sides:
            instance, rows[side.name] = run_side(engine, side, scripts, draw, budget, warm=warm)
            warm = instance if isinstance(instance, DraftingInstance) else warm
            rows[side.name]["speedup"] = round(rows["group"]["seconds"] / rows[side.name]["seconds"], 3)
            print(f"  {budget:>7,} tokens of cache, {side.name:17}" + describe(rows[side.name]), flush=True)
    return figures


def run_side(
    engine: Engine,
    side: Side,
    scripts: Sequence[Script],
    draw: GroupSpec,
    budget: int,
    warm: NativeInstance | None = None,
) -> tuple[NativeInstance, Figures]:
    """Generate all scripts once, with no more than `budget` tokens in the cache."""
    engine.weights_changed(engine.version + 1)  # nothing is left of the side before
    held = engine.pool.take(engine.num_pages - budget // engine.page_size)
    instance = side.instance("engine", engine)
    instance.state = replace(instance.state, kv_tokens=budget)
    if isinstance(instance, DraftingInstance) and isinstance(warm, DraftingInstance):
        instance.speculation.pacing = warm.speculation.pacing  # a run knows its machine from the step before
    fleet = Fleet([instance], build_policy(side.policy), KVPool(HOST_BYTES), chunk_tokens=side.chunk)
    clock = SchedulerClock(fleet)
    start = time.perf_counter()
    for number, script in enumerate(scripts):
        group = requests(script.problem, draw, number)
        fleet.launch([to_spec(request, number, place) for place, request in enumerate(group)], group)
    ends = []
    while fleet.busy:
        for spec, completion in fleet.work():
            ends.append(time.perf_counter() - start)
            assert list(completion.ids) == list(scripts[spec.group].responses[spec.sample]), (
                f"{spec} drew another text"
            )
    engine.pool.release(held)
    return instance, summarise(ends, instance, clock)


def summarise(ends: list[float], instance: NativeInstance, clock: SchedulerClock) -> Figures:
    seconds, nine_tenths = ends[-1], ends[int(0.9 * len(ends)) - 1]
    figures: Figures = {
        "seconds": round(seconds, 3),
        "tail_seconds": round(seconds - nine_tenths, 3),
        "decisions": clock.fleet.scheduler.decisions,
        "scheduler_us_per_decision": round(1e6 * clock.seconds / clock.fleet.scheduler.decisions, 1),
    }
    if isinstance(instance, DraftingInstance):
        tally = instance.speculation.tally
        figures |= {
            "steps": tally.steps,
            "drafted_steps": tally.drafted_steps,
            "tokens_a_drafted_step": round(1 + tally.accepted / max(1, tally.rows), 2),
            "accepted_share": round(tally.accepted / max(1, tally.drafted), 3),
            "search_share": round(tally.search_seconds / seconds, 4),
            "plain_step_ms": usual(instance.speculation.pacing.times.plain),
            "drafted_step_ms": usual(instance.speculation.pacing.times.drafted),
        }
    return figures


class SchedulerClock:
    """The seconds that a fleet's scheduler thinks."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.seconds = fleet, 0.0
        for name in ("launch", "next_dispatches", "chunk_ended"):
            setattr(fleet.scheduler, name, self.time(getattr(fleet.scheduler, name)))

    def time(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def describe(figures: Figures) -> str:
    text = f"{figures['seconds']:8.2f} s ({figures['speedup']:.2f}x), tail {figures['tail_seconds']:6.2f} s"
    if "steps" in figures:
        text += (
            f", drafts in {figures['drafted_steps']} of {figures['steps']} steps, there "
            f"{figures['tokens_a_drafted_step']:.2f} tokens a row, search {figures['search_share']:.1%}"
        )
    return text + f", {figures['scheduler_us_per_decision']:.0f} us a decision"
