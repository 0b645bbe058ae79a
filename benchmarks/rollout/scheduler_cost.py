"""CPU microseconds per scheduling decision, from 100 open requests to 100,000, for every policy.

A decision is all that follows when a chunk ends: the request goes back or ends, a group is launched for every
one that ended, somebody is picked and given a place. The number of open requests stays what it is, three
quarters of them waiting; `group` lets none wait, its engines queue them. Lengths vary by group and within it.
Rounds run from few requests to many and over again, and the median of the rounds counts. O(log n) is a straight
line over a logarithmic axis. The last line is JSON.

    python benchmarks/rollout/scheduler_cost.py
    python benchmarks/rollout/scheduler_cost.py --plot scheduler_cost.png
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec
from foresail.rollout.policies import POLICIES, build_policy
from foresail.rollout.scheduler import Scheduler

SAMPLES, PROMPT, CHUNK, MAX_TOKENS = 8, 200, 512, 4096


@dataclass(kw_only=True)
class Load:
    """A scheduler with a constant number of open requests, and the truth about their lengths."""

    scheduler: Scheduler
    lengths: dict[str, int]
    numbers: random.Random
    running: list[Dispatch] = field(default_factory=list)
    num_launched: int = 0
    num_ended: int = 0

    def launch(self) -> None:
        typical = self.numbers.lognormvariate(7, 0.8)
        specs = [self.spec(sample) for sample in range(SAMPLES)]
        for spec in specs:
            length = typical * self.numbers.lognormvariate(0, 0.3)
            self.lengths[spec.id] = max(1, min(MAX_TOKENS, int(length)))
        self.num_launched += 1
        self.scheduler.launch(specs)

    def spec(self, sample: int) -> SampleSpec:
        group = self.num_launched
        return SampleSpec(
            id=f"{group}.{sample}", group=group, sample=sample, prompt_tokens=PROMPT, max_tokens=MAX_TOKENS
        )

    def end_chunk(self) -> ChunkEnded:
        """Any running request comes to the end of its chunk."""
        place = self.numbers.randrange(len(self.running))
        self.running[place], self.running[-1] = self.running[-1], self.running[place]
        dispatch = self.running.pop()
        left = self.lengths[dispatch.spec.id] - dispatch.generated
        tokens = min(left, dispatch.max_tokens)
        return ChunkEnded(
            spec=dispatch.spec,
            instance=dispatch.instance,
            generated=dispatch.generated,
            new_tokens=tokens,
            finished=tokens == left,
        )

    def decide(self, event: ChunkEnded) -> None:
        self.scheduler.chunk_ended(event)
        self.num_ended += event.finished
        if event.finished and self.num_ended % SAMPLES == 0:
            self.launch()
        self.running += self.scheduler.next_dispatches()


def main() -> None:
    options = read_options()
    costs = measure(options)
    print_table(costs, options.sizes)
    if options.plot:
        draw(costs, options.sizes, options.plot)
        print(f"plot: {options.plot}")
    figures = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "instances": options.instances,
        "decisions": options.decisions * options.rounds,
        "microseconds": costs,
    }
    print(json.dumps(figures))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--instances", type=int, default=64)
    parser.add_argument("--decisions", type=int, default=20_000, help="in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plot", type=Path, help="save a PNG here")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, dict[int, float]]:
    """Policy -> open requests -> median microseconds per decision."""
    costs = {}
    for policy in POLICIES:
        loads = {size: open_load(policy, size, options.instances) for size in options.sizes}
        rounds = [
            {size: time_round(load, options.decisions) for size, load in loads.items()}
            for _ in range(options.rounds + 1)
        ][1:]  # the first warms up
        costs[policy] = {size: median(one[size] for one in rounds) for size in options.sizes}
    return costs


def open_load(policy: str, size: int, instances: int) -> Load:
    lengths: dict[str, int] = {}
    scheduler = Scheduler(build_policy(policy, true_length=lambda spec: lengths[spec.id]), chunk_tokens=CHUNK)
    rows = max(1, size // 4 // instances)
    for number in range(min(instances, size // 4)):
        room = rows * (PROMPT + MAX_TOKENS)
        scheduler.add_instance(InstanceState(name=f"i{number}", kv_tokens=room, max_running=rows))
    load = Load(scheduler=scheduler, lengths=lengths, numbers=random.Random(0))
    for _ in range(size // SAMPLES):
        load.launch()
    load.running += scheduler.next_dispatches()
    return load


def time_round(load: Load, decisions: int) -> float:
    """Mean CPU microseconds of the scheduler alone; rebuilt heaps and collected garbage are in it."""
    seconds = []
    for _ in range(decisions):
        event = load.end_chunk()
        start = time.process_time()
        load.decide(event)
        seconds.append(time.process_time() - start)
    return 1e6 * mean(seconds)


def print_table(costs: dict[str, dict[int, float]], sizes: Sequence[int]) -> None:
    print("CPU microseconds per decision, by open requests")
    print(f"{'policy':<10}" + "".join(f"{size:>10,}" for size in sizes))
    for policy, by_size in costs.items():
        print(f"{policy:<10}" + "".join(f"{by_size[size]:>10.1f}" for size in sizes))


def draw(costs: dict[str, dict[int, float]], sizes: Sequence[int], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    for policy, by_size in costs.items():
        axes.plot(sizes, [by_size[size] for size in sizes], "o-", label=policy, linewidth=2)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("open requests")
    axes.set_ylabel("CPU microseconds per decision")
    axes.set_title("A scheduling decision: a straight line here is O(log n)", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    main()
