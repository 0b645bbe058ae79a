"""What MiMo and Seer report, on simulated clusters: the project's scheduler and controller, virtual time.

Workloads and machines are those of recipes/simulate; docs/simulate.md says where each number comes from. No
assumption was fitted to the papers' speed-ups. Five steps of each, with other groups in every step. The last
line is JSON. A quarter of an hour on one core.

    python benchmarks/rollout/rollout_papers.py
    python benchmarks/rollout/rollout_papers.py --what-if    # other assumptions too; ten minutes more
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foresail.simulate.report import summarize
from foresail.simulate.settings import load_simulation
from foresail.simulate.step import simulate

RECIPES = Path("recipes/simulate")

# Training, against the naive way's rollout: all three rows of MiMo's table 2 give 0.096 from their two columns.
TRAINING_SHARE = 0.096

NAIVE = ("rollout.policy=group", "step.grading=after-all", "step.graders=1")
MIMO = {
    "naive dynamic sampling": (*NAIVE, "step.launches=rounds"),
    "  placed one by one": ("step.grading=after-all", "step.graders=1", "step.launches=rounds"),
    "+ continuous": ("step.graders=1", "step.early_termination=false"),
    "+ asynchronous reward": ("step.early_termination=false",),
    "+ early termination": (),
    "+ divided, context": ("rollout.policy=context", "rollout.chunk_tokens=2048"),
}
# overall, rollout, idle, waste
MIMO_PAPER = {
    "naive dynamic sampling": (1.00, 1.00, 0.693, 0.221),
    "+ continuous": (1.99, 2.20, 0.388, 0.139),
    "+ asynchronous reward": (2.09, 2.34, 0.340, 0.164),
    "+ early termination": (2.29, 2.61, 0.277, 0.129),
}
VALIDATION = {
    "naive validation": (*NAIVE, "step.launches=all"),
    "+ asynchronous reward alone": ("rollout.policy=group", "step.launches=all"),
    "streamed": ("step.launches=all",),
}
VALIDATION_BAR = 1.96

SEER = {
    "whole groups": ("rollout.policy=group", "speculation=none"),
    "+ divided": ("rollout.policy=fifo", "speculation=none"),
    "+ context": ("speculation=none",),
    "+ speculation": (),
    "oracle, no speculation": ("rollout.policy=oracle", "speculation=none"),
}
# speed-up of each row, tail as a share of the total before and after, and the bar for the speed-up
SEER_PAPER = {
    "seer-moonlight": ((1.0, 1.41, 1.47, 1.90), (1817 / 3910, 278 / 2181), 1.9),
    "seer-qwen2-vl-72b": ((1.0, 1.42, 1.56, 2.04, 1.63), (2301 / 3957, 123 / 1922), 2.0),
    "seer-kimi-k2": ((1.0, 1.16, 1.27, 1.53), (3144 / 12202, 850 / 8267), 1.5),
}
TAIL_BAR, ORACLE_BAR = 0.72, 0.03
STEPS = 5

WHAT_IF = {
    "as assumed": (),
    "siblings less alike": ("workload.correlation=0.5",),
    "chunks of 8,192": ("rollout.chunk_tokens=8192",),
    "costs carried over from 1.5B": ("cluster.costs_shape=1.5B",),
    "drafts for free": ("speculation.draft_share=0",),
}
# Kimi-K2 only: twice the weights; and every card an engine of its own, since its 32 share no cache.
K2_WHAT_IF = {
    "bfloat16 weights": ("cluster.weight_gb=2060",),
    "a cache per card": (
        "cluster.instances=256",
        "cluster.cards_per_instance=1",
        "cluster.weight_gb=32.2",
        "cluster.active_billions=32",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What was asked for, and what came out."""

    name: str
    asked: float
    found: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        return self.found >= self.asked if self.at_least else self.found <= self.asked

    def __str__(self) -> str:
        sign = "at least" if self.at_least else "at most"
        return f"{'met   ' if self.met else 'MISSED'}  {self.name}: {self.found:.3g}, asked {sign} {self.asked:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--what-if", action="store_true", help="Seer's workloads under other assumptions, too"
    )
    options = parser.parse_args()
    bars, figures = report_mimo()
    for report in (report_validation(), *(report_seer(name) for name in SEER_PAPER)):
        bars += report[0]
        figures |= report[1]
    print("\nBars")
    print(*bars, sep="\n")
    if options.what_if:
        figures["what_if"] = report_what_if()
    print(json.dumps({"bars": [asdict(bar) | {"met": bar.met} for bar in bars], "figures": figures}))


def run(recipe: str, overrides: Sequence[str]) -> dict[str, Any]:
    simulation = load_simulation(RECIPES / f"{recipe}.toml", overrides)
    summary = summarize(simulation, simulate(simulation))
    del summary["assumptions"]
    return summary


def report_mimo() -> tuple[list[Bar], dict[str, Any]]:
    print("MiMo, table 2: ours (paper)")
    print(f"{'':26}{'overall':>14}{'rollout':>14}{'idle':>18}{'waste':>18}")
    bars, figures = [], {}
    for row, overrides in MIMO.items():
        own = figures[row] = run("mimo-7b", overrides)
        naive = figures["naive dynamic sampling"]["seconds"]
        training = TRAINING_SHARE * naive
        own["rollout_speedup"] = naive / own["seconds"]
        own["overall_speedup"] = (naive + training) / (own["seconds"] + training)
        ours = own["overall_speedup"], own["rollout_speedup"], own["idle_ratio"], own["waste_ratio"]
        print(f"{row:26}" + "".join(beside(ours, MIMO_PAPER.get(row, ()))))
        if row in MIMO_PAPER:
            bars.append(Bar(name=f"MiMo {row}, overall", asked=MIMO_PAPER[row][0], found=ours[0]))
    return bars[1:], {"mimo": figures}


def beside(ours: Sequence[float], paper: Sequence[float]) -> list[str]:
    """beside((2.1, 2.2, 0.3, 0.1), (2.0, …)) -> "2.10 (2.00)", … , "30.0 % (…)"."""
    cells = []
    for place, figure in enumerate(ours):
        kind = ".2f" if place < 2 else ".1%"
        theirs = f"({paper[place]:{kind}})" if paper else ""
        cells.append(f"{figure:{kind}} {theirs:>8}".rjust(14 if place < 2 else 18))
    return cells


def report_validation() -> tuple[list[Bar], dict[str, Any]]:
    print("\nMiMo, validation")
    figures = {row: run("mimo-7b", overrides) for row, overrides in VALIDATION.items()}
    naive = figures["naive validation"]["seconds"]
    for row, own in figures.items():
        print(f"{row:30}{naive / own['seconds']:6.2f}x   idle {own['idle_ratio']:.1%}")
    speedup = naive / figures["streamed"]["seconds"]
    return [Bar(name="MiMo validation", asked=VALIDATION_BAR, found=speedup)], {"validation": figures}


def report_seer(name: str) -> tuple[list[Bar], dict[str, Any]]:
    speedups, tails, bar = SEER_PAPER[name]
    figures = climb(name, (f"steps={STEPS}",))
    first = figures["whole groups"]
    print(f"\n{name}")
    print(f"{'':24}{'seconds':>10}{'speed-up':>10}{'paper':>8}{'tail s':>9}{'idle':>8}{'put back':>10}")
    for place, (row, own) in enumerate(figures.items()):
        theirs = f"{speedups[place]:.2f}" if place < len(speedups) else ""
        print(
            f"{row:24}{own['seconds']:10,.0f}{first['seconds'] / own['seconds']:10.2f}{theirs:>8}"
            f"{own['tail_seconds']:9,.0f}{own['idle_ratio']:8.1%}{own['preemptions']:10,}"
        )
    last = figures["+ speculation"]
    print(
        f"tail's share of the time: {first['tail_seconds'] / first['seconds']:.0%} -> "
        f"{last['tail_seconds'] / last['seconds']:.0%}; paper {tails[0]:.0%} -> {tails[1]:.0%}"
    )
    return seer_bars(name, figures, bar), {name: figures}


def climb(name: str, overrides: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Every row of Seer's ladder. Drafts that are switched off stay so, whatever else is said about them."""
    plain = [override for override in overrides if not override.startswith("speculation.")]
    return {
        row: run(name, (*(plain if "speculation=none" in rung else overrides), *rung))
        for row, rung in SEER.items()
    }


def seer_bars(name: str, figures: dict[str, dict[str, Any]], bar: float) -> list[Bar]:
    first, last, oracle = figures["whole groups"], figures["+ speculation"], figures["oracle, no speculation"]
    return [
        Bar(name=f"{name}, throughput", asked=bar, found=first["seconds"] / last["seconds"]),
        Bar(
            name=f"{name}, less tail", asked=TAIL_BAR, found=1 - last["tail_seconds"] / first["tail_seconds"]
        ),
        Bar(
            name=f"{name}, context behind oracle",
            asked=ORACLE_BAR,
            found=figures["+ context"]["seconds"] / oracle["seconds"] - 1,
            at_least=False,
        ),
    ]


def report_what_if() -> dict[str, Any]:
    print("\nWhat if: throughput, less tail, context behind oracle")
    figures: dict[str, Any] = {}
    for name, (_, _, bar) in SEER_PAPER.items():
        others = WHAT_IF | (K2_WHAT_IF if name == "seer-kimi-k2" else {})
        for change, overrides in others.items():
            throughput, tail, behind = seer_bars(name, climb(name, overrides), bar)
            figures[f"{name}, {change}"] = [throughput.found, tail.found, behind.found]
            print(
                f"{name:20}{change:30}{throughput.found:6.2f}x{tail.found:8.0%}{behind.found:8.1%}",
                flush=True,
            )
    return figures


if __name__ == "__main__":
    main()
