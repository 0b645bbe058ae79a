"""What `rollout.staleness = 1` gains and costs in real runs: the quickstart's reinforcement, with a worker process.

Three arms from one cold start, for every seed: in turns with the default loss; in turns with the loss that stale
samples need (the trainer's own log-probabilities, an importance cap); one step ahead with that loss. The engine is
a worker process and the trainer has one thread, so two free cores are what it takes. Arms take turns, so that a
machine that slows down slows all of them. `predicted_step_s` is what the simulator's rule makes of the times in
turns (`simulate/overlap.py`). Given again, the command goes on where it was; the last line is JSON.

    python benchmarks/rollout/staleness.py    # 3 seeds x 3 arms x 30 steps
    python benchmarks/rollout/staleness.py --root /tmp/try --seeds 0 --steps 3 --cold-steps 300
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from foresail.quickstart.reasoning import rl_recipe, sft_recipe, write_problems, write_tokenizer
from foresail.quickstart.stages import train_stage
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.parts import Checkpoints, Rollout, Run
from foresail.recipe.tables.policy_loss import Loss
from foresail.runlog.directory import RunDirectory
from foresail.simulate.overlap import mean_step_seconds

IN_TURNS, SAME_LOSS, AHEAD = "in-turns", "in-turns-same-loss", "one-ahead"
STALE_LOSS = Loss(old_logprobs="trainer", importance_cap=2.0)
ARMS: dict[str, dict[str, Any]] = {
    IN_TURNS: {"rollout": Rollout(workers=1)},
    SAME_LOSS: {"rollout": Rollout(workers=1), "loss": STALE_LOSS},
    AHEAD: {"rollout": Rollout(workers=1, staleness=1), "loss": STALE_LOSS},
}
HELD_OUT = "val-core/arithmetic/acc/mean@1"
MEANS = {  # of steps, by name; where an arm has them
    "rollout_s": "timing_s/rollout",
    "update_s": "timing_s/update",
    "sync_s": "timing_s/weight_sync",
    "trainer_waits_s": "timing_s/wait_for_rollout",
    "engines_wait_s": "timing_s/wait_for_update",
    "version_lag": "rollout/version_lag",
    "stale_kl": "rollout/stale_kl",
    "mismatch_kl": "rollout/logprob_kl",
    "importance_ratio": "rollout/importance_ratio",
    "importance_capped": "rollout/importance_capped",
    "clipped": "actor/pg_clipfrac",
}


def main() -> None:
    options = read_options()
    if options.only:
        run_part(options, *options.only)
        return
    options.root.mkdir(parents=True, exist_ok=True)
    start(options, "cold start", 0)
    for seed in options.seeds:
        for arm in ARMS:
            start(options, arm, seed)
    runs = {arm: [read_run(folder_of(options.root, arm, seed)) for seed in options.seeds] for arm in ARMS}
    arms = {arm: mean_of(figures) for arm, figures in runs.items()}
    in_turns = arms[SAME_LOSS]
    predicted = mean_step_seconds(
        [in_turns["rollout_s"] - in_turns["sync_s"]], [in_turns["update_s"]], in_turns["sync_s"], staleness=1
    )
    print(
        f"{'arm':<22}{'s a step':>10}{'tokens/s':>10}{'held out':>17}{'lag':>6}{'stale KL':>11}{'capped':>9}"
    )
    for arm, figures in arms.items():
        print(describe(arm, figures))
    settings = {"seeds": options.seeds, "steps": options.steps, "cold_steps": options.cold_steps}
    print(json.dumps(settings | {"predicted_step_s": round(predicted, 4), "arms": arms, "runs": runs}))


def start(options: argparse.Namespace, part: str, seed: int) -> None:
    """In a process of its own, the trainer on one thread; the worker has one as ever."""
    words = ["--root", options.root, "--steps", options.steps, "--cold-steps", options.cold_steps]
    command = [sys.executable, __file__, *map(str, words), "--only", part, str(seed)]
    with (options.root / "log.txt").open("a") as log:
        subprocess.run(
            command, check=True, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    print(f"{part}, seed {seed}: done", file=sys.stderr, flush=True)


def run_part(options: argparse.Namespace, part: str, seed: str) -> None:
    root = options.root
    write_problems(root / "data", 0)
    vocab_size = write_tokenizer(root).vocab_size
    cold = sft_recipe(root, 0, vocab_size).model_copy(update={"steps": options.cold_steps})
    if part == "cold start":
        train_stage(cold)
        return
    checkpoint = RunDirectory(cold.run.folder).checkpoint_path(options.cold_steps)
    train_stage(arm_recipe(root, part, int(seed), checkpoint, options.steps))


def arm_recipe(root: Path, arm: str, seed: int, checkpoint: Path, steps: int) -> Rl:
    """Saves are left out, and evaluations but for two: no arm does them beside anything."""
    folder = folder_of(root, arm, seed)
    recipe = rl_recipe(root, seed, checkpoint).model_copy(
        update={
            "run": Run(name=folder.name, root=str(folder.parent), seed=seed, device="cpu"),
            "steps": steps,
            "eval_every": steps,
            "checkpoints": Checkpoints(every=steps),
            **ARMS[arm],
        }
    )
    return Rl(**dict(recipe))  # checked anew


def folder_of(root: Path, arm: str, seed: int) -> Path:
    return root / f"seed-{seed}" / arm


def read_run(folder: Path) -> dict[str, float]:
    """Means over all steps but the first, which no arm draws ahead, and the last, beside which nothing is drawn."""
    records = [record for record in RunDirectory.open(folder).read_metrics() if record["step"]]
    steady = records[1:-1]
    seconds = [record["timing_s/step"] for record in steady]
    figures = {
        "step_s": fmean(seconds),
        "tokens_per_s": sum(record["perf/total_num_tokens"] for record in steady) / sum(seconds),
        "loop_s": sum(record["timing_s/step"] - record.get("timing_s/eval", 0.0) for record in records),
        "held_out": records[-1][HELD_OUT],
        "reward_last_third": fmean(record["critic/score/mean"] for record in records[-len(records) // 3 :]),
    }
    for name, metric in MEANS.items():
        if values := [record[metric] for record in steady if metric in record]:
            figures[name] = fmean(values)
    return figures


def mean_of(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Over seeds, and of the accuracy also how far seeds are apart."""
    means = {name: fmean(run[name] for run in runs) for name in runs[0]}
    spread = stdev(run["held_out"] for run in runs) if len(runs) > 1 else 0.0
    return {**means, "held_out_spread": spread}


def describe(arm: str, figures: dict[str, Any]) -> str:
    held_out = f"{100 * figures['held_out']:.1f} ± {100 * figures['held_out_spread']:.1f} %"
    kl = f"{figures['stale_kl']:.1e}" if "stale_kl" in figures else "-"
    capped = f"{figures['importance_capped']:.2%}" if "importance_capped" in figures else "-"
    return (
        f"{arm:<22}{figures['step_s']:>10.3f}{figures['tokens_per_s']:>10.0f}{held_out:>17}"
        f"{figures.get('version_lag', 0.0):>6.2f}{kl:>11}{capped:>9}"
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=Path("runs/staleness"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument(
        "--cold-steps", type=int, default=1600, help="of the fine-tuning that all arms start from"
    )
    parser.add_argument("--only", nargs=2, metavar=("PART", "SEED"), help="one run, in this process")
    options = parser.parse_args()
    if options.steps < 3:
        parser.error("--steps: at least 3, of which the first and the last are left out")
    return options


if __name__ == "__main__":
    main()
