"""On-policy distillation beside GRPO: how many samples each draws until it is as good.

    python benchmarks/distill.py --size tiny --device cpu             # a few minutes on a CPU
    python benchmarks/distill.py --size lab --device cuda --seeds 3   # an H200

For every seed: a weak policy from scratch, a teacher that has seen more, then GRPO and distillation by every
divergence, from one start on the same problems, with one sample a prompt. What GRPO reaches is the mean of its
last three evaluations; distillation has reached it when the mean of three of its own has. The bar: in at most a
fifth of GRPO's samples. The last line is JSON. A command that was cut off goes on with what is finished.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from word_lab import SIZES, Lab, curve, greedy_accuracy, run_once, samples_to_reach, smooth

DIVERGENCES = ("reverse", "forward", "js", "sampled")


def main() -> None:
    options = read_options()
    begin = time.time()
    found = [measure(options, seed) for seed in range(options.first_seed, options.first_seed + options.seeds)]
    best = [
        min((arm["share"] for arm in seed["arms"].values() if arm["share"]), default=None) for seed in found
    ]
    bars = {
        "a fifth of GRPO's samples": all(share is not None and share <= 0.2 for share in best),
        "GRPO gained 5 points": all(seed["grpo"]["reached"] >= seed["start"] + 0.05 for seed in found),
        "the teacher is better": all(seed["teacher"] > seed["grpo"]["reached"] for seed in found),
    }
    print(
        json.dumps(
            {
                "size": options.size,
                "device": options.device,
                "seconds": round(time.time() - begin, 1),
                "seeds": found,
                "best_share": best,
                "bars": bars,
            }
        )
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--divergences", nargs="+", choices=DIVERGENCES, default=list(DIVERGENCES))
    parser.add_argument("--steps", type=int, help="of each run that samples; default: the size's")
    parser.add_argument("--sft-steps", type=int, help="of the start; more make it better")
    parser.add_argument("--teacher-steps", type=int, help="of the teacher")
    parser.add_argument("--output", type=Path, default=Path("runs/distill-lab"))
    return parser.parse_args()


def measure(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    size = SIZES[options.size]
    size = replace(
        size,
        steps=options.steps or size.steps,
        sft_steps=options.sft_steps or size.sft_steps,
        teacher_steps=options.teacher_steps or size.teacher_steps,
    )
    folder = options.output / f"{options.size}-{seed}"
    lab = Lab(folder=folder, size=size, device=options.device, seed=seed)
    lab.prepare()
    start, teacher = lab.start(), lab.teacher()
    grpo = smooth(curve(run_once(lab.grpo("grpo", start)).run, size.samples))
    shared: dict[str, Any] = {
        "samples_per_prompt": 1,
        "prompts_per_step": max(size.prompts, size.prompts * size.samples // 8),  # a quarter of GRPO's in all
        "steps": 2 * size.steps,
    }
    teacher_accuracy = greedy_accuracy(lab, teacher, folder / "teacher-measured")
    print(
        f"seed {seed}: start {grpo[0][1]:.1%}, teacher {teacher_accuracy:.1%}, GRPO {grpo[-1][1]:.1%} after "
        f"{grpo[-1][0]:,} samples",
        flush=True,
    )
    goal = grpo[-1][1]
    needed = samples_to_reach(grpo, goal) or grpo[-1][0]
    arms = {}
    for divergence in options.divergences:
        points = curve(
            run_once(lab.distill(f"distill-{divergence}", start, teacher, divergence, **shared)).run, 1
        )
        reached = samples_to_reach(smooth(points), goal)
        arms[divergence] = {
            "samples": reached,
            "share": None if reached is None else round(reached / needed, 4),
            "last": round(fmean(accuracy for _, accuracy in points[-3:]), 4),
            "curve": points,
        }
        print(f"seed {seed}, {divergence}: {arms[divergence] | {'curve': '…'}}", flush=True)
    return {
        "seed": seed,
        "start": grpo[0][1],
        "teacher": teacher_accuracy,
        "grpo": {"reached": goal, "samples": needed, "curve": grpo},
        "arms": arms,
    }


if __name__ == "__main__":
    main()
