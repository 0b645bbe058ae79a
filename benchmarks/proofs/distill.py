"""On-policy distillation beside GRPO: how many samples each draws until it is as good.

    python benchmarks/proofs/distill.py --size tiny --device cpu              # a minute: shows that it runs
    python benchmarks/proofs/distill.py --size lab --device cuda --seeds 3    # an H200

For every seed: a policy from scratch that is unsure of its answers, a teacher that has learned longer (`word_lab`),
then GRPO and distillation by every divergence, from one start on the same problems, with one sample a prompt.
What GRPO reaches is the mean of its last three evaluations; distillation has reached it when the mean of three of
its own has. The bar: in at most a fifth of GRPO's samples.

GRPO keeps groups that teach nothing: replacing them, it draws several times the samples, which would flatter
distillation. With --replacing it is run that way as well, and told beside. The last line is JSON, curves are in a
seed's result.json; a command that was cut off goes on with what is finished (`lab_seeds`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from lab_plot import draw_arms
from lab_seeds import every_seed, lab_parser, size_of, tell
from word_lab import SIZES, Lab, Size, curve, greedy_accuracy, samples_to_reach, smooth

from foresail.recipe.tables.dynamic_sampling import DynamicSampling

DIVERGENCES = ("reverse", "forward", "js", "sampled")
REPLACING = {
    "grpo": DynamicSampling(enabled=False),
    "grpo-replacing": DynamicSampling(),
}


def main() -> None:
    options = read_options()
    size = size_of(options, SIZES)
    results = every_seed(options, lambda folder, seed: measure(options, size, folder, seed))
    if options.draw:
        draw(results, options.draw)
    tell(options, results, **judge(results))


def read_options() -> argparse.Namespace:
    parser = lab_parser(__doc__, SIZES, "runs/distill-lab")
    parser.add_argument("--divergences", nargs="+", choices=DIVERGENCES, default=list(DIVERGENCES))
    parser.add_argument(
        "--rl-rates", type=float, nargs="+", default=[3e-5, 1e-4], help="of GRPO, of which the best counts"
    )
    parser.add_argument(
        "--replacing", action="store_true", help="GRPO also with groups replaced that teach nothing"
    )
    return parser.parse_args()


def judge(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The divergence that counts is one for all seeds."""
    shares = {name: [seed["arms"][name]["share"] for seed in results] for name in results[0]["arms"]}
    reached = {name: max(each) for name, each in shares.items() if None not in each}
    return {
        "start": [seed["start"]["greedy"] for seed in results],
        "teacher": [seed["teacher"] for seed in results],
        "reached": {name: [seed["grpo"][name]["reached"] for seed in results] for name in results[0]["grpo"]},
        "samples": {name: [seed["grpo"][name]["samples"] for seed in results] for name in results[0]["grpo"]},
        "shares": shares,
        "bars": {
            "a fifth of GRPO's samples": bool(reached) and min(reached.values()) <= 0.2,
            "GRPO gained 5 points": all(
                seed["grpo"]["grpo"]["reached"] >= seed["start"]["greedy"] + 0.05 for seed in results
            ),
            "the teacher is better": all(
                seed["teacher"] > seed["grpo"]["grpo"]["reached"] for seed in results
            ),
        },
    }


def measure(options: argparse.Namespace, size: Size, folder: Path, seed: int) -> dict[str, Any]:
    lab = Lab(folder=folder, size=size, device=options.device, seed=seed)
    lab.prepare()
    start, teacher = lab.start(), lab.teacher()
    teacher_accuracy = greedy_accuracy(lab, teacher)
    grpo: dict[str, dict[str, Any]] = {}
    for name in REPLACING if options.replacing else ("grpo",):
        curves = {
            lr: grpo_curve(lab, f"{name}-{lr:g}", start, lr, REPLACING[name]) for lr in options.rl_rates
        }
        rate = max(curves, key=lambda lr: curves[lr][-1][1])
        points, last = curves[rate], curves[rate][-1][1]
        grpo[name] = {
            "reached": last,
            "samples": samples_to_reach(points, last),
            "curve": points,
            "rate": rate,
            "by_rate": {f"{lr:g}": points[-1][1] for lr, points in curves.items()},
        }
        print(
            f"seed {seed}: start {points[0][1]:.1%}, teacher {teacher_accuracy:.1%}, {name} at {rate:g} {last:.1%} "
            f"after {points[-1][0]:,} samples",
            flush=True,
        )
    arms = {}
    for divergence in options.divergences:
        arms[divergence] = distill(lab, start, teacher, divergence, grpo["grpo"])
        print(f"seed {seed}, {divergence}: {arms[divergence] | {'curve': '…'}}", flush=True)
    greedy = grpo["grpo"]["curve"][0][1]
    return {
        "start": {"policy": start.parent.parent.name, "greedy": greedy, "tried": lab.tried()},
        "teacher": teacher_accuracy,
        "grpo": grpo,
        "arms": arms,
    }


def grpo_curve(
    lab: Lab, name: str, start: Path, lr: float, replacing: DynamicSampling
) -> list[tuple[int, float]]:
    recipe = lab.grpo(name, start, lr, dynamic_sampling=replacing)
    return smooth(curve(lab.run(recipe).run, lab.size.samples))


def distill(lab: Lab, start: Path, teacher: Path, divergence: str, grpo: dict[str, Any]) -> dict[str, Any]:
    size = lab.size
    recipe = lab.distill(
        f"distill-{divergence}",
        start,
        teacher,
        divergence,
        samples_per_prompt=1,
        prompts_per_step=max(size.prompts, size.prompts * size.samples // 8),  # a quarter of GRPO's in all
        steps=2 * size.steps,
    )
    points = curve(lab.run(recipe).run, 1)
    reached = samples_to_reach(smooth(points), grpo["reached"])
    return {
        "samples": reached,
        # GRPO that is never better than the start is no goal
        "share": round(reached / grpo["samples"], 4) if reached is not None and grpo["samples"] else None,
        "last": round(fmean(accuracy for _, accuracy in points[-3:]), 4),
        "curve": points,
    }


def draw(results: Sequence[dict[str, Any]], picture: Path) -> None:
    arms = {
        f"distillation, {name}": [smooth(seed["arms"][name]["curve"]) for seed in results]
        for name in results[0]["arms"]
    }
    arms |= {name: [seed["grpo"][name]["curve"] for seed in results] for name in results[0]["grpo"]}
    draw_arms(picture, arms, title="Held-out accuracy, greedy", below="samples drawn")


if __name__ == "__main__":
    main()
