"""Online DPO against offline DPO and GRPO at equal samples.

    python benchmarks/online_dpo.py --size tiny --device cpu             # a few minutes on a CPU
    python benchmarks/online_dpo.py --size lab --device cuda --seeds 3   # an H200

For every seed, from one weak policy on the same word problems: GRPO; online DPO with a fixed reference and with one
that is renewed; and offline DPO, whose pairs are made the same way of samples of the start, all drawn before the
first step. Each draws as many samples: steps x prompts x samples of a prompt, without replacing groups that teach
nothing. The last line is JSON; a command that was cut off goes on with what is finished.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from word_lab import SIZES, Lab, curve, greedy_accuracy, run_once, sample, write_rows

from foresail.algorithms.pairing import Answer, pair_answers
from foresail.evaluation.results import ProblemResult
from foresail.recipe import parts
from foresail.runlog.directory import RunDirectory

NO_REPLACING = parts.DynamicSampling(enabled=False)


def main() -> None:
    options = read_options()
    begin = time.time()
    found = [measure(options, seed) for seed in range(options.first_seed, options.first_seed + options.seeds)]
    means = {arm: round(fmean(seed["accuracy"][arm] for seed in found), 4) for arm in found[0]["accuracy"]}
    online = max(means["online"], means["online-renewed"])
    start = fmean(seed["start"] for seed in found)
    bars = {
        "online over offline": online > means["offline"],
        "online near GRPO": online > means["grpo"] - 0.03,
        "GRPO gained 5 points": means["grpo"] >= start + 0.05,
    }
    print(
        json.dumps(
            {
                "size": options.size,
                "device": options.device,
                "seconds": round(time.time() - begin, 1),
                "seeds": found,
                "means": means,
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
    parser.add_argument("--pairs", type=int, default=4, help="of a prompt")
    parser.add_argument("--steps", type=int, help="of each run that samples; default: the size's")
    parser.add_argument("--sft-steps", type=int, help="of the start; more make it better")
    parser.add_argument("--output", type=Path, default=Path("runs/online-dpo-lab"))
    return parser.parse_args()


def measure(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    size = SIZES[options.size]
    size = replace(size, steps=options.steps or size.steps, sft_steps=options.sft_steps or size.sft_steps)
    folder = options.output / f"{options.size}-{seed}"
    lab = Lab(folder=folder, size=size, device=options.device, seed=seed)
    lab.prepare()
    start = lab.start()
    pairing: dict[str, Any] = {"pairing": {"most": options.pairs}, "dynamic_sampling": NO_REPLACING}
    renewed = {**pairing, "reference": {"renew_every": max(1, size.steps // 10)}}
    sampled = {
        "grpo": lab.grpo("grpo", start, dynamic_sampling=NO_REPLACING),
        "online": lab.online_dpo("online", start, **pairing),
        "online-renewed": lab.online_dpo("online-renewed", start, **renewed),
    }
    curves = {name: curve(run_once(recipe).run, size.samples) for name, recipe in sampled.items()}
    accuracy = {name: round(fmean(each for _, each in points[-3:]), 4) for name, points in curves.items()}
    count = offline_pairs(lab, start, options.pairs)
    # as many updates of as many pairs as online DPO has on average
    paired = [record["pairs/count"] for record in read(folder / "online") if "pairs/count" in record]
    batch = max(1, min(round(fmean(paired)), count))
    offline = run_once(
        lab.dpo("offline", start, folder / "pairs.jsonl", steps=size.steps, batch_size=batch, eval_every=0)
    )
    accuracy["offline"] = round(greedy_accuracy(lab, offline.checkpoint, folder / "offline-after"), 4)
    print(f"seed {seed}: start {curves['grpo'][0][1]:.1%}, {accuracy}, {count} offline pairs", flush=True)
    return {
        "seed": seed,
        "start": curves["grpo"][0][1],
        "accuracy": accuracy,
        "samples": size.steps * size.prompts * size.samples,
        "offline_pairs": count,
        "curves": curves,
    }


def read(run: Path) -> list[dict[str, Any]]:
    return RunDirectory(run).read_metrics()


def offline_pairs(lab: Lab, start: Path, most: int) -> int:
    """Of as many samples as the others draw, all of them the start's."""
    size, path = lab.size, lab.folder / "pairs.jsonl"
    if not path.exists():
        problems = parts.Problems(
            source=str(lab.folder / "asked.jsonl"), limit=min(size.asked, size.steps * size.prompts)
        )
        results = sample(lab, start, problems, size.samples, lab.folder / "drawn")
        prompts = {row["id"]: row["prompt"] for row in map(json.loads, (lab.folder / "asked.jsonl").open())}
        write_rows(path, [pair for result in results for pair in pairs_of(result, prompts, most)])
    return sum(1 for _ in path.open())


def pairs_of(result: ProblemResult, prompts: dict[str, str], most: int) -> list[dict[str, str]]:
    attempts = [attempt for attempt in result.judged if attempt.text.strip()]
    answers = [Answer(reward=float(attempt.correct), right=attempt.correct) for attempt in attempts]
    return [
        {
            "prompt": prompts[result.problem_id],
            "chosen": attempts[chosen].text,
            "rejected": attempts[rejected].text,
        }
        for chosen, rejected in pair_answers(answers, "rule", most)
    ]


if __name__ == "__main__":
    main()
