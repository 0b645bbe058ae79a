"""Online DPO against offline DPO and GRPO at equal samples.

    python benchmarks/proofs/online_dpo.py --size tiny --device cpu              # a minute: shows that it runs
    python benchmarks/proofs/online_dpo.py --size lab --device cuda --seeds 3    # an H200

For every seed, from one policy that is unsure of its answers (`word_lab`), on the same word problems: GRPO; online
DPO with a fixed reference and with one that is renewed; and offline DPO, whose pairs are made the same way of
samples of the start, all drawn before the first step. Each draws as many samples: steps x prompts x samples of a
prompt, without replacing groups that teach nothing. Every arm is run with each of its learning rates; the one that
is best over all seeds counts, the others are told. The last line is JSON, curves are in a seed's result.json; a
command that was cut off goes on with what is finished (`lab_seeds`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from lab_plot import draw_arms
from lab_seeds import every_seed, lab_parser, size_of, tell
from word_lab import SIZES, Lab, Size, curve, greedy_accuracy, sample, write_rows

from foresail.algorithms.pairing import ScoredAnswer, pair_answers
from foresail.evaluation.results import ProblemResult
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.runlog.directory import RunDirectory

NO_REPLACING = DynamicSampling(enabled=False)
ARMS = ("grpo", "online", "online-renewed", "offline")


def main() -> None:
    options = read_options()
    size = size_of(options, SIZES)
    results = every_seed(options, lambda folder, seed: measure(options, size, folder, seed))
    means = {
        run: round(fmean(seed["accuracy"][run] for seed in results), 4) for run in results[0]["accuracy"]
    }
    best = {arm: best_run(arm, means) for arm in ARMS}
    if options.draw:
        draw(results, best, options.draw)
    tell(options, results, **judge(results, means, best))


def read_options() -> argparse.Namespace:
    parser = lab_parser(__doc__, SIZES, "runs/online-dpo-lab")
    parser.add_argument("--pairs", type=int, default=4, help="of a prompt")
    parser.add_argument(
        "--rl-rates", type=float, nargs="+", default=[3e-5, 1e-4], help="learning rates of GRPO"
    )
    parser.add_argument(
        "--dpo-rates", type=float, nargs="+", default=[1e-5, 3e-5], help="of DPO in all forms"
    )
    return parser.parse_args()


def best_run(arm: str, means: Mapping[str, float]) -> str:
    """best_run("online", {"online 3e-05": 0.6, "online 0.0001": 0.7, …}) -> "online 0.0001"."""
    return max((run for run in means if run.split()[0] == arm), key=lambda run: means[run])


def judge(
    results: Sequence[dict[str, Any]], means: Mapping[str, float], best: Mapping[str, str]
) -> dict[str, Any]:
    start = fmean(seed["start"]["greedy"] for seed in results)
    of = {arm: means[run] for arm, run in best.items()}
    online = max(of["online"], of["online-renewed"])
    return {
        "samples": results[0]["samples"],
        "start": round(start, 4),
        "means": means,
        "best": best,
        "bars": {
            "online over offline": online > of["offline"],
            "online near GRPO": online > of["grpo"] - 0.03,
            "GRPO gained 5 points": of["grpo"] >= start + 0.05,
        },
    }


def measure(options: argparse.Namespace, size: Size, folder: Path, seed: int) -> dict[str, Any]:
    lab = Lab(folder=folder, size=size, device=options.device, seed=seed)
    lab.prepare()
    start = lab.start()
    pairing: dict[str, Any] = {"pairing": {"most": options.pairs}, "dynamic_sampling": NO_REPLACING}
    renewed = {**pairing, "reference": {"renew_every": max(1, size.steps // 10)}}
    recipes: dict[str, Any] = {}
    for lr in options.rl_rates:
        name = f"grpo {lr:g}"
        recipes[name] = lab.grpo(folder_name(name), start, lr, dynamic_sampling=NO_REPLACING)
    for lr in options.dpo_rates:
        for arm, changes in (("online", pairing), ("online-renewed", renewed)):
            name = f"{arm} {lr:g}"
            recipes[name] = lab.online_dpo(folder_name(name), start, lr, **changes)
    curves = {}
    for name, recipe in recipes.items():
        curves[name] = curve(lab.run(recipe).run, size.samples)
        print(
            f"seed {seed}, {name}: {curves[name][-1][1]:.1%} after {curves[name][-1][0]:,} samples",
            flush=True,
        )
    accuracy = {name: round(fmean(each for _, each in points[-3:]), 4) for name, points in curves.items()}
    count = offline_pairs(lab, start, options.pairs)
    # as many updates as online DPO has, of as many pairs as the one that had most
    num_pairs = max(mean_pairs(folder / folder_name(name)) for name in curves if name.startswith("online"))
    batch = max(1, min(count, round(num_pairs)))
    for lr in options.dpo_rates:
        name = f"offline {lr:g}"
        settings: dict[str, Any] = {"steps": size.steps, "batch_size": batch, "eval_every": 0}
        recipe = lab.dpo(folder_name(name), start, lr, lab.path("pairs"), **settings)
        accuracy[name] = round(greedy_accuracy(lab, lab.run(recipe).checkpoint), 4)
    first = curves[next(iter(curves))][0][1]
    print(f"seed {seed}: start {first:.1%}, {accuracy}, {count} offline pairs, {batch} an update", flush=True)
    return {
        "start": {"policy": start.parent.parent.name, "greedy": first, "tried": lab.tried()},
        "accuracy": accuracy,
        "samples": size.steps * size.prompts * size.samples,
        "offline_pairs": count,
        "offline_batch": batch,
        "curves": curves,
    }


def folder_name(run: str) -> str:
    return run.replace(" ", "-")


def mean_pairs(run: Path) -> float:
    """That an update of online DPO had."""
    records = RunDirectory(run).read_metrics()
    return fmean(record["pairs/count"] for record in records if "pairs/count" in record)


def offline_pairs(lab: Lab, start: Path, max_pairs: int) -> int:
    """Of as many samples as the others draw, all of them the start's."""
    size, path = lab.size, lab.path("pairs")
    if not path.exists():
        problems = lab.problems("asked", limit=min(size.asked, size.steps * size.prompts))
        prompts = {problem.id: problem.prompt[-1].content for problem in problems}
        results = sample(lab, start, problems, size.samples)
        write_rows(path, [pair for result in results for pair in pairs_of(result, prompts, max_pairs)])
    with path.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def pairs_of(result: ProblemResult, prompts: dict[str, str], max_pairs: int) -> list[dict[str, str]]:
    attempts = [attempt for attempt in result.judged if attempt.text.strip()]
    answers = [ScoredAnswer(reward=float(attempt.correct), right=attempt.correct) for attempt in attempts]
    return [
        {
            "prompt": prompts[result.problem_id],
            "chosen": attempts[chosen].text,
            "rejected": attempts[rejected].text,
        }
        for chosen, rejected in pair_answers(answers, "rule", max_pairs)
    ]


def draw(results: Sequence[dict[str, Any]], best: Mapping[str, str], picture: Path) -> None:
    arms = {
        run: [seed["curves"][run] for seed in results] for run in best.values() if run in results[0]["curves"]
    }
    offline = best["offline"]
    arms[offline] = [[(seed["samples"], seed["accuracy"][offline])] for seed in results]
    labels = {run: f"{arm}, rate {run.split()[1]}" for arm, run in best.items()}
    lines = {labels[run]: points for run, points in arms.items()}
    draw_arms(picture, lines, title="Held-out accuracy, greedy", below="samples drawn")


if __name__ == "__main__":
    main()
