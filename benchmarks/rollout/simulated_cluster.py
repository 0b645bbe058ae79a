"""Whole steps on 32 to 1,024 simulated H200: what a card gives, what grows with their number, what staleness gains.

The 7B workload of recipes/simulate/cluster-7b.toml, engines and trainer on the same cards in turns. Once the batch
grows with the cards (64 responses each), once it stays (8,192 responses). Scheduler, controller and fleet are those
of a run, and their CPU time is real: "loop" is their CPU seconds against the simulated ones, and a table adds what
pickled messages take (message_cost.py). "Told" are instances that hear of a chunk, "graders" those that are busy
on average. Then the cards are split into some that generate and some that train, strictly on-policy and one step
ahead. The last line is JSON.

    python benchmarks/rollout/simulated_cluster.py > figures.txt    # half an hour on one core
    python benchmarks/rollout/simulated_cluster.py --parts plan     # the 671B plan alone, two minutes
    python benchmarks/rollout/simulated_cluster.py --draw figures.txt docs/cluster-scaling.png
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import message_cost

from foresail.runlog.canvas import CORAL, GOLD, NAVY, PLUM, TEAL, new_figure, quiet, save_figure
from foresail.simulate.overlap import mean_step_seconds
from foresail.simulate.settings import Simulation, load_simulation
from foresail.simulate.step import StepResult, simulate
from foresail.simulate.whole_step import sync_seconds, whole_steps

RECIPES = Path("recipes/simulate")
SIZES = (32, 64, 128, 256, 512, 1024)
SAMPLES, GROUPS_PER_CARD, FIXED_GROUPS = 16, 4, 512
TOKEN_BYTES = 4  # of an id on its way
TOKENS = 9_800  # of a request at the end of a chunk, on average over chunks
HOST = {
    "loop": "scheduler, controller, fleet alone",
    "packed": "with messages, text packed once (now)",
    "lists": "with text in lists",
    "to all": "with text in lists to every instance (before)",
}
PARTS = ("messages", "growing", "fixed", "staleness", "plan")

# Staleness: cards in all, those that generate, longest responses at the same mean, and the update's work.
CARDS, SPLITS = 64, (16, 24, 32, 40, 48, 56)
LONGEST = {"short tail": 16_384, "as assumed": 32_768, "long tail": 131_072}
WORK = (0.25, 0.5, 1.0, 2.0, 4.0)  # against one pass of a 7B model

PLANS = {
    "in turns, 512 cards": ("cluster.instances=64", "trainer.ranks=none"),
    "256 + 256 cards": (),
    "256 + 256, one step ahead": ("rollout.staleness=1",),
}


def main() -> None:
    options = read_options()
    if options.draw:
        *files, picture = options.draw
        draw_again(files, picture)
        return
    figures: dict[str, Any] = {"machine": platform.machine(), "python": platform.python_version()}
    if "messages" in options.parts:
        figures["messages"] = vars(message_cost.measure(TOKENS))
        figures["poll_microseconds"] = poll_microseconds()
    if "growing" in options.parts:
        title = f"The batch grows: {GROUPS_PER_CARD * SAMPLES} responses a card"
        figures["growing"] = report_scaling(options.sizes, title, lambda size: GROUPS_PER_CARD * size)
        if "messages" in options.parts:
            report_host(figures)
    if "fixed" in options.parts:
        title = f"The batch stays: {FIXED_GROUPS * SAMPLES:,} responses"
        figures["fixed"] = report_scaling(options.sizes, title, lambda size: FIXED_GROUPS)
    if "staleness" in options.parts:
        figures["staleness"] = report_staleness()
    if "plan" in options.parts:
        figures["plan"] = report_plan()
    print(json.dumps(figures))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--draw", type=Path, nargs="+", metavar="FILE", help="what earlier runs printed, and the PNG to save"
    )
    return parser.parse_args()


# More and more cards.


def report_scaling(sizes: Sequence[int], title: str, groups_of: Any) -> list[dict[str, float]]:
    print(f"\n{title}")
    print(
        f"{'cards':>6}{'rollout s':>11}{'tail s':>8}{'update s':>10}{'unhidden':>10}{'sync s':>8}{'step s':>8}"
        f"{'tok/s/card':>12}{'chunks/s':>10}{'us/chunk':>10}{'loop':>8}{'told':>7}{'graders':>9}"
    )
    rows = []
    for size in sizes:
        row = measure(size, groups_of(size))
        rows.append(row)
        print(
            f"{size:6}{row['rollout_seconds']:11,.1f}{row['tail_seconds']:8,.1f}{row['update_seconds']:10,.1f}"
            f"{row['exposed_seconds']:10,.2f}{row['sync_seconds']:8,.2f}{row['seconds']:8,.1f}"
            f"{row['tokens_per_card_second']:12,.0f}{row['chunks_per_second']:10,.0f}"
            f"{row['loop_us_per_chunk']:10,.0f}{row['loop_load']:8.2f}{row['sibling_messages_per_chunk']:7.1f}"
            f"{row['graders_busy']:9,.2f}",
            flush=True,
        )
    return rows


def measure(size: int, groups: int) -> dict[str, float]:
    simulation = load_simulation(
        RECIPES / "cluster-7b.toml", [f"cluster.instances={size}", f"workload.groups={groups}"]
    )
    (result,) = simulate(simulation)
    whole = whole_steps(simulation, [result])
    assert whole is not None, "the recipe has a trainer"
    return vars(whole) | loads(result) | {"cards": size, "sync_apart": sync_apart(simulation)}


def loads(result: StepResult) -> dict[str, Any]:
    """What a rollout asks of everything that is there once, however many instances there are."""
    return {
        "tail_seconds": result.tail_seconds,
        "chunks_per_second": result.decisions / result.seconds,
        "loop_us_per_chunk": 1e6 * result.host_seconds / result.decisions,
        "loop_load": result.host_seconds / result.seconds,
        "tokens_at_chunks": round(result.sibling_tokens / result.sibling_messages),
        "sibling_messages_per_chunk": result.sibling_messages / result.decisions,
        "sibling_mb_per_second": TOKEN_BYTES * result.sibling_tokens / result.seconds / 1e6,
        "graders_busy": result.grading_seconds / result.seconds,
    }


def report_host(figures: dict[str, Any]) -> None:
    """Cores that the host needs for the loop, and with what messages cost."""
    print("\nThe host, cores")
    print(f"{'cards':>6}" + "".join(f"{name:>10}" for name in HOST))
    for row in figures["growing"]:
        cores = host_cores(row, message_cost.MessageCost(**figures["messages"]))
        print(f"{row['cards']:6}" + "".join(f"{cores[name]:10.2f}" for name in HOST))


def host_cores(row: dict[str, Any], cost: message_cost.MessageCost) -> dict[str, float]:
    loop, messages = row["loop_load"], row["sibling_messages_per_chunk"]
    both = cost.report + cost.order
    microseconds = {
        "packed": cost.per_chunk(messages),
        "lists": both + messages * cost.text_as_list,
        "to all": both + (row["cards"] - 1) * cost.text_as_list,
    }
    return {
        "loop": loop,
        **{name: loop + row["chunks_per_second"] * each / 1e6 for name, each in microseconds.items()},
    }


def sync_apart(simulation: Simulation) -> dict[str, float]:
    """Seconds of every kind of sync, from a trainer on cards of its own."""
    assert simulation.trainer is not None, "the recipe has a trainer"
    trainer = simulation.trainer.model_copy(update={"ranks": simulation.cluster.instances})
    return {
        kind: sync_seconds(
            simulation.model_copy(
                update={"trainer": trainer, "sync": simulation.sync.model_copy(update={"kind": kind})}
            )
        )
        for kind in ("one_by_one", "tree", "chain")
    }


def poll_microseconds(looks: int = 20_000) -> float:
    """CPU time to ask a worker's pipe whether there is news: a look at 1,024 instances asks as many."""
    pipe, other = Pipe()
    start = time.process_time()
    for _ in range(looks):
        pipe.poll()
    spent = time.process_time() - start
    pipe.close()
    other.close()
    return 1e6 * spent / looks


# One step ahead.


def report_staleness() -> dict[str, Any]:
    print(f"\n{CARDS} cards: seconds a step, and cards that generate in the best split")
    print(
        f"{'':12}{'update/rollout':>15}{'in turns':>10}{'apart':>14}{'one ahead':>14}"
        f"{'gain':>8}{'against turns':>15}"
    )
    results: dict[str, Any] = {}
    for name, longest in LONGEST.items():
        shared, apart = run_split(CARDS, None, longest), {n: run_split(n, CARDS - n, longest) for n in SPLITS}
        for work in WORK:
            row = results[f"{name}, {work:g}"] = compare(shared, apart, work)
            print(
                f"{name:12}{row['ratio']:15.2f}{row['in_turns']:10,.0f}{row['apart']:9,.0f} ({row['apart_split']})"
                f"{row['ahead']:9,.0f} ({row['ahead_split']}){row['apart'] / row['ahead']:8.2f}"
                f"{row['in_turns'] / row['ahead']:15.2f}",
                flush=True,
            )
    return results


def run_split(instances: int, ranks: int | None, longest: int) -> dict[str, float]:
    """Seconds of the parts, with so many cards that generate and so many that train."""
    overrides = [f"cluster.instances={instances}", f"workload.max_tokens={longest}"]
    overrides += [f"trainer.micro_batch_tokens={longest + 512}"]
    overrides += [] if ranks is None else [f"trainer.ranks={ranks}"]
    simulation = load_simulation(RECIPES / "cluster-7b.toml", overrides)
    whole = whole_steps(simulation, simulate(simulation))
    assert whole is not None, "the recipe has a trainer"
    return {
        "rollout": whole.rollout_seconds,
        "update": whole.update_seconds,
        "sync": whole.sync_seconds,
    }


def compare(shared: dict[str, float], apart: dict[int, dict[str, float]], work: float) -> dict[str, float]:
    """The same step in turns on all cards, and by the best split of them with staleness 0 and 1."""

    def step(parts: dict[str, float], staleness: int) -> float:
        return mean_step_seconds(
            [parts["rollout"]], [work * parts["update"]], parts["sync"], staleness=staleness
        )

    best = [min((step(parts, staleness), split) for split, parts in apart.items()) for staleness in (0, 1)]
    return {
        "ratio": work * shared["update"] / shared["rollout"],
        "in_turns": step(shared, 0),
        "apart": best[0][0],
        "apart_split": best[0][1],
        "ahead": best[1][0],
        "ahead_split": best[1][1],
    }


# 671B.


def report_plan() -> dict[str, Any]:
    print("\nA 671B mixture of experts")
    figures: dict[str, Any] = {}
    for name, overrides in PLANS.items():
        simulation = load_simulation(RECIPES / "cluster-671b.toml", overrides)
        results = simulate(simulation)
        whole = whole_steps(simulation, results)
        assert whole is not None, "the recipe has a trainer"
        figures[name] = vars(whole) | loads(results[0])
        print(
            f"{name:28}rollout {whole.rollout_seconds:7,.0f} s   update {whole.update_seconds:6,.0f} s (unhidden "
            f"communication {whole.exposed_seconds:5,.0f} s)   sync {whole.sync_seconds:5.1f} s   "
            f"step {whole.seconds:7,.0f} s",
            flush=True,
        )
    return figures


def draw_again(files: Sequence[Path], picture: Path) -> None:
    """From what earlier runs printed, each perhaps some of the parts."""
    lines = [file.read_text(encoding="utf-8").splitlines()[-1] for file in files]
    figures = {name: part for line in lines for name, part in json.loads(line).items()}
    report_host(figures)
    draw(figures, picture)


def draw(figures: dict[str, Any], path: Path) -> None:
    cards = [row["cards"] for row in figures["growing"]]
    with new_figure((10, 6.6), title="7B on simulated H200, engines and trainer in turns") as figure:
        speed, parts, host, ahead = figure.subplots(2, 2).flat
        for part, color, label in (
            ("growing", NAVY, "64 responses a card"),
            ("fixed", CORAL, "8,192 responses in all"),
        ):
            own = [row["cards"] for row in figures[part]]
            each = [row["tokens_per_card_second"] for row in figures[part]]
            speed.plot(own, each, "o-", color=color, label=label, linewidth=2)
        for name, color in (("rollout", NAVY), ("tail", TEAL), ("update", CORAL), ("sync", GOLD)):
            seconds = [row[f"{name}_seconds"] for row in figures["fixed"]]
            parts.plot(own, seconds, "o-", color=color, label=name, linewidth=2)
        cost = message_cost.MessageCost(**figures["messages"])
        for (name, label), color in zip(HOST.items(), (TEAL, NAVY, CORAL, PLUM), strict=True):
            cores = [host_cores(row, cost)[name] for row in figures["growing"]]
            host.plot(cards, cores, "o-", color=color, label=label, linewidth=2)
        for name, color in zip(LONGEST, (TEAL, NAVY, PLUM), strict=True):
            rows = [figures["staleness"][f"{name}, {work:g}"] for work in WORK]
            ratios = [row["ratio"] for row in rows]
            ahead.plot(
                ratios, [row["in_turns"] / row["ahead"] for row in rows], "o-", color=color, label=name
            )
            ahead.plot(ratios, [row["apart"] / row["ahead"] for row in rows], "o:", color=color)
        quiet(speed, title="tokens a second and card, whole steps")
        quiet(parts, title="seconds of a step, 8,192 responses")
        quiet(host, title="cores of the one host, 64 responses a card")
        quiet(ahead, title="staleness 1, 64 cards: times as fast as in turns\n(dotted: as apart)")
        host.axhline(1, color=GOLD, linewidth=1)
        ahead.axhline(1, color=GOLD, linewidth=1)
        ahead.set_xlabel("update / rollout, in turns")
        for axes in (speed, parts, host):
            axes.set_xscale("log", base=2)
            axes.set_xticks(own, [f"{size:,}" for size in own])
            axes.set_xlabel("cards")
        parts.set_yscale("log")
        host.set_yscale("log")
        ahead.set_xscale("log")
        speed.set_ylim(bottom=0)
        for axes in (speed, parts, host, ahead):
            axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)
    print(f"plot: {path}")


if __name__ == "__main__":
    main()
