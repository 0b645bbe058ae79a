"""What dynamic sampling, clip-higher, the easy pool and the curriculum are each worth: each switched off in turn.

On the quickstart's bigger sister: chains of 4 to 13 operations instead of 3 to 5, a model of 1.3 M parameters
instead of 0.1 M, and a cold start too short to be sure of them. Five levels of difficulty follow from the length.
Every seed has one cold start; from it each arm runs alike but for the part that is missing. Arms are
processes beside each other. Given again, the command goes on where it was; the last line is JSON.

The easy pool can matter only when problems come again. Thirty steps launch some 1,900 of the 8,000 problems, so
its own ablation has fewer problems and more steps. `solved` is the share of groups in which every sample was right:
drawn, and of no use.

    python benchmarks/proofs/ablations.py    # 5 arms x 3 seeds
    python benchmarks/proofs/ablations.py --root runs/easy-pool --arms full no-easy-pool --problems 1000 --steps 120
    python benchmarks/proofs/ablations.py --seeds 0 --arms full no-curriculum --steps 10 --jobs 2
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from foresail.data.made.arithmetic import direct, make_problems, worked
from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.evaluation.interval import confidence_interval
from foresail.quickstart.stages import train_stage
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.curriculum import CurriculumStage
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.records import Problem
from foresail.runlog.atomic import write_text
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.train import train_bpe

LENGTHS, SHOWN = (4, 13), (2, 13)  # operations of a chain: in reinforcement, in the cold start
NUM_TRAIN, NUM_SHOWN, NUM_TEST = 8000, 6000, 500
DIRECT_SHARE = 0.5  # of the cold start's examples answer at once
SFT_STEPS, RL_STEPS = 500, 30
ARMS = ("full", "no-dynamic-sampling", "no-clip-higher", "no-easy-pool", "no-curriculum")
# From short chains to long ones; nothing is ever left out, so that it is not forgotten.
STAGES = ((0.5, 0.3, 0.1, 0.05, 0.05), (0.2, 0.3, 0.3, 0.1, 0.1), (0.1, 0.1, 0.2, 0.3, 0.3))
METRIC = "val-core/arithmetic/acc/mean@1"
HEADER = (
    f"{'arm':<22}{'held out':>16}{'mean of curve':>16}{'level 5':>10}{'samples':>10}{'solved':>8}{'seconds':>9}"
    "   first arm minus this one, by seed"
)


def main() -> None:
    options = read_options()
    if options.only:
        seed, arm = options.only
        run_arm(options.root, int(seed), arm, options.steps)
        return
    for seed in options.seeds:
        write_data(options.root / f"seed-{seed}", seed, options.problems)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda seed: start(options, seed, "sft"), options.seeds))
        list(
            pool.map(lambda job: start(options, *job), [(s, a) for s in options.seeds for a in options.arms])
        )
    results = {
        arm: [read_arm(options.root / f"seed-{s}" / arm) for s in options.seeds] for arm in options.arms
    }
    print(HEADER)
    for arm, runs in results.items():
        print(describe(arm, runs, results[options.arms[0]]))
    settings = {"seeds": options.seeds, "steps": options.steps, "problems": options.problems}
    print(json.dumps(settings | {"arms": results}))


def start(options: argparse.Namespace, seed: int, arm: str) -> None:
    """One run in a process of its own, on one thread: that many fit beside each other."""
    command = [sys.executable, __file__, "--root", str(options.root), "--steps", str(options.steps)]
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    log = options.root / f"seed-{seed}" / f"{arm}.log"
    with log.open("a") as out:
        subprocess.run(
            [*command, "--only", str(seed), arm], check=True, stdout=out, stderr=out, env=environment
        )
    print(f"seed {seed}: {arm} is done", flush=True)


def run_arm(root: Path, seed: int, arm: str, steps: int) -> None:
    folder = root / f"seed-{seed}"
    if (folder / arm / "result.json").exists():
        return
    if arm == "sft":
        outcome = train_stage(sft_recipe(folder, seed))
    else:  # the finished cold start is only read: its folder belongs to one process at a time
        tuned = folder / "sft" / "checkpoints" / f"step_{SFT_STEPS}"
        outcome = train_stage(rl_recipe(folder, seed, arm, steps, tuned))
    results = evaluate_checkpoint(
        outcome.checkpoint,
        parts.Problems(source=str(folder / "test.jsonl")),
        parts.Sampling(max_new_tokens=88),
        num_samples=0,
        output=outcome.run / "eval",
        seed=seed,
        dtype="float32",
    )
    levels = {row["id"]: row["level"] for row in map(json.loads, (folder / "test.jsonl").open())}
    right = [
        (levels[r.problem_id], float(r.greedy is not None and r.greedy.status == "correct")) for r in results
    ]
    scores = [score for _, score in right]
    records = RunDirectory.open(outcome.run).read_metrics()
    launched = [record.get("rollout/groups_launched", 0) for record in records]
    solved = sum(n * record.get("groups/solved", 0.0) for n, record in zip(launched, records, strict=True))
    result = {
        "accuracy": fmean(scores),
        "interval": confidence_interval(scores),
        "by_level": [
            fmean(score for own_level, score in right if own_level == level) for level in range(1, 6)
        ],
        "curve": [[record["step"], record[METRIC]] for record in records if METRIC in record],
        "samples": 16 * sum(launched),
        "solved": solved / max(1, sum(launched)),
        "groups_used": sum(record.get("rollout/groups_used", 0) for record in records),
        "seconds": sum(record.get("timing_s/step", 0.0) for record in records),
    }
    write_text(folder / arm / "result.json", json.dumps(result))


def read_arm(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "result.json").read_text()))


def describe(arm: str, runs: list[dict[str, Any]], first: list[dict[str, Any]]) -> str:
    """Means over seeds, the held-out accuracy with its spread between them; then `first` minus this arm."""
    final = [100 * run["accuracy"] for run in runs]
    spread = stdev(final) if len(final) > 1 else 0.0
    curve = fmean(100 * fmean(value for _, value in run["curve"]) for run in runs)
    hard = fmean(100 * run["by_level"][4] for run in runs)
    samples, solved, seconds = (fmean(run[key] for run in runs) for key in ("samples", "solved", "seconds"))
    held_out = f"{fmean(final):.1f} ± {spread:.1f} %"
    ahead = [100 * (best["accuracy"] - run["accuracy"]) for best, run in zip(first, runs, strict=True)]
    return (
        f"{arm:<22}{held_out:>16}{curve:>14.1f} %{hard:>8.1f} %{samples:>10.0f}{solved:>8.0%}{seconds:>9.0f}   "
        + ", ".join(f"{points:+.1f}" for points in ahead)
    )


# Data: chains of all lengths with their level, and the cold start's.


def write_data(folder: Path, seed: int, num_train: int = NUM_TRAIN) -> None:
    if (folder / "sft.jsonl").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, count, split in (("train", num_train, "train"), ("test", NUM_TEST, "test")):
        made = make_problems(count, seed=seed, steps=LENGTHS, split=split)
        write_lines(folder / f"{name}.jsonl", [to_row(problem) for problem in made])
    habit = random.Random(f"habit {seed}")
    shown = [
        {
            "prompt": problem.prompt[-1].content,
            "completion": direct(problem) if habit.random() < DIRECT_SHARE else worked(problem),
        }
        for problem in make_problems(NUM_SHOWN, seed=seed, steps=SHOWN)
    ]
    texts = [text for row in shown for text in row.values()]
    whole = ["<think>", "</think>", r"\boxed{"]
    train_bpe(texts, vocab_size=64, whole_tokens=whole, alphabet="seen").save(folder / "tokenizer")
    write_lines(folder / "sft.jsonl", shown)


def to_row(problem: Problem) -> dict[str, Any]:
    """Lengths 4 and 5 are level 1, 12 and 13 level 5."""
    expression = problem.prompt[-1].content
    level = (len(expression.split()) - 1 - LENGTHS[0]) // 2 + 1
    row = {"id": problem.id, "prompt": expression, "answer": problem.answer, "data_source": problem.source}
    return {**row, "level": level}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


# Recipes.


def sft_recipe(folder: Path, seed: int) -> Sft:
    shape = ModelShape(
        family="qwen3",
        qk_norm=True,
        vocab_size=64,
        hidden_size=192,
        intermediate_size=384,
        num_layers=4,
        num_heads=6,
        num_kv_heads=2,
        head_dim=32,
        max_context=128,
    )
    return Sft(
        run=parts.Run(name="sft", root=str(folder), seed=seed),
        model=parts.Model(shape=shape, tokenizer=str(folder / "tokenizer"), dtype="float32"),
        data=(Conversations(source=str(folder / "sft.jsonl")),),
        steps=SFT_STEPS,
        batch_size=32,
        max_length=128,
        optimizer=parts.Optimizer(lr=2e-3, beta2=0.98, warmup=40, schedule="linear"),
        checkpoints=parts.Checkpoints(every=250, keep=1),
    )


def rl_recipe(folder: Path, seed: int, arm: str, steps: int, checkpoint: Path) -> Rl:
    """The full recipe, or all of it but one part."""
    third = steps // len(STAGES)
    curriculum = [CurriculumStage(steps=third, mix=mix) for mix in STAGES[:-1]]
    curriculum.append(CurriculumStage(mix=STAGES[-1]))
    dynamic = DynamicSampling(
        enabled=arm != "no-dynamic-sampling", easy_pool=None if arm == "no-easy-pool" else 0.1
    )
    return Rl(
        run=parts.Run(name=arm, root=str(folder), seed=seed),
        model=parts.Model(path=str(checkpoint), dtype="float32"),
        data=(ProblemSource(source=str(folder / "train.jsonl"), difficulty_key="level"),),
        eval=(HeldOut(source=str(folder / "test.jsonl"), limit=200),),
        eval_every=max(1, steps // 12),
        steps=steps,
        prompts_per_step=32,
        samples_per_prompt=16,
        updates_per_step=4,
        max_prompt_tokens=32,
        sampling=parts.Sampling(max_new_tokens=88),
        curriculum=() if arm == "no-curriculum" else tuple(curriculum),
        loss=Loss(clip_high=0.2) if arm == "no-clip-higher" else Loss(),
        dynamic_sampling=dynamic,
        engine=parts.Engine(page_size=8),
        optimizer=parts.Optimizer(lr=2e-4, warmup=4),
        checkpoints=parts.Checkpoints(every=20, keep=1),
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--steps", type=int, default=RL_STEPS)
    parser.add_argument("--problems", type=int, default=NUM_TRAIN, help="to reinforce on; fewer come again")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 1), help="runs at once")
    parser.add_argument("--only", nargs=2, metavar=("SEED", "ARM"), help="one run, in this process")
    return parser.parse_args()


if __name__ == "__main__":
    main()
