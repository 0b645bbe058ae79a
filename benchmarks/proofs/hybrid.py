r"""One model that answers at once or thinks, trained from scratch: how many long chains it takes, what they cost.

    python benchmarks/proofs/hybrid.py --size card --seeds 0 1 2 --root runs/hybrid     # one H200
    python benchmarks/proofs/hybrid.py --size tiny --seeds 0 --root runs/hybrid-tiny    # CPU

Arithmetic modulo 10, where steps written down are easy and all steps in the head are not. The first SFT stage has
direct answers only. Its model's pass rates choose the problems of the long chains (`--window`), and a second stage
goes on with direct answers and so many chains; with a share of 0 it is the model without long chains. All shares
see the same number of direct answers, chains come on top. Each is judged on held-out problems in both modes, the
largest share also with thinking budgets. The bars: thinking at least 10 points over fast, fast within 1 point of
the model without chains, no thinking token with thinking off.

A folder that has a result is read, not run again. The last line is JSON; results.json in the root has all of it.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.data.made.arithmetic import direct, make_problems, worked
from foresail.evaluation.difficulty import grade_difficulty
from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.evaluation.results import summarise
from foresail.quickstart.stages import train_stage
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.sources import Conversations
from foresail.runlog.atomic import write_text
from foresail.tokenizer.thinking import BUILT_IN
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75)
BUDGETS = (0, 8, 16, 24, 32)
LEAST_GAIN, MOST_LOSS = 0.10, 0.01


@dataclass(frozen=True, kw_only=True)
class Size:
    """Of the model, the problems, and the two stages."""

    hidden: int
    layers: int
    operations: str
    problems: int
    measured: int  # of which pass rates are taken
    held_out: int
    batch: int
    first_steps: int
    second_steps: int  # of direct answers alone; chains come on top
    lr: float


SIZES = {
    "card": Size(
        hidden=128, layers=4, operations="4-6", problems=60_000, measured=20_000, held_out=2000, batch=256,
        first_steps=1500, second_steps=600, lr=2e-3,
    ),
    "tiny": Size(
        hidden=64, layers=2, operations="3-5", problems=6000, measured=1500, held_out=200, batch=32,
        first_steps=500, second_steps=250, lr=4e-3,
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--shares", type=float, nargs="+", default=[*SHARES])
    parser.add_argument("--budgets", type=int, nargs="*", default=[*BUDGETS])
    parser.add_argument("--window", type=float, nargs=2, default=[0.0, 0.9], metavar=("LOW", "HIGH"))
    parser.add_argument("--root", type=Path, default=Path("runs/hybrid"))
    parser.add_argument("--draw", type=Path, help="picture of the sweep")
    options = parser.parse_args()
    size = SIZES[options.size]
    runs = [one_seed(options.root / f"seed-{seed}", size, seed, options) for seed in options.seeds]
    results = {"size": options.size, "window": options.window, "runs": runs} | judge_bars(runs)
    write_text(options.root / "results.json", json.dumps(results, indent=2) + "\n")
    if options.draw:
        draw(runs, options.draw)
    print(json.dumps({key: value for key, value in results.items() if key != "runs"}))


def one_seed(folder: Path, size: Size, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    started = time.monotonic()
    tokenizer = make_tokenizer(folder / "tokenizer", size)
    fast = f"arithmetic:count={size.problems},seed={seed},steps={size.operations}"
    chains = f"arithmetic:count={size.measured},seed={seed + 1000},steps={size.operations}"
    start = stage(
        folder / "first",
        size,
        seed,
        model=parts.Model(shape=shape(size, tokenizer), tokenizer=str(folder / "tokenizer"), dtype="float32"),
        data=(Conversations(source=fast, name="fast", thinking=False),),
        steps=size.first_steps,
    )
    rates = folder / "rates" / "difficulty.jsonl"
    if not rates.exists():
        problems = parts.Problems(source=chains, thinking=False)
        sampling = parts.Sampling(max_new_tokens=16)
        grade_difficulty(start, problems, sampling, num_samples=8, output=rates.parent, seed=seed)
    by_share = {}
    for share in options.shares:
        data = [Conversations(source=fast, name="fast", thinking=False, weight=1 - share)]
        if share:
            window = tuple(options.window)
            data.append(
                Conversations(
                    source=chains, name="chains", thinking=True, weight=share, pass_rates=str(rates),
                    pass_window=window,
                )
            )  # fmt: skip
        checkpoint = stage(
            folder / f"share-{share:g}",
            size,
            seed,
            model=parts.Model(path=str(start), dtype="float32"),
            data=tuple(data),
            steps=round(size.second_steps / (1 - share)),
        )
        budgets = options.budgets if share == max(options.shares) else []
        by_share[f"{share:g}"] = judge(checkpoint, folder / f"share-{share:g}-eval", size, seed, budgets)
        print(f"seed {seed}, share {share:g}: {by_share[f'{share:g}']}", flush=True)
    return {"seed": seed, "seconds": round(time.monotonic() - started, 1), "shares": by_share}


def make_tokenizer(folder: Path, size: Size) -> Tokenizer:
    if (folder / "tokenizer.json").exists():
        return Tokenizer.load(folder)
    smallest, largest = map(int, size.operations.split("-"))
    problems = make_problems(500, seed=0, steps=(smallest, largest))
    texts = [text for p in problems for text in (p.prompt[-1].content, worked(p), direct(p), "\n", "\n\n")]
    tokenizer = train_bpe(
        texts,
        vocab_size=64,
        whole_tokens=("<think>", "</think>", r"\boxed{"),
        alphabet="seen",
        chat_template=BUILT_IN["hybrid-short"][0],
    )
    tokenizer.save(folder)
    return tokenizer


def shape(size: Size, tokenizer: Tokenizer) -> ModelShape:
    return ModelShape(
        family="qwen3",
        qk_norm=True,
        vocab_size=tokenizer.vocab_size,
        hidden_size=size.hidden,
        intermediate_size=2 * size.hidden,
        num_layers=size.layers,
        num_heads=4,
        num_kv_heads=2,
        head_dim=size.hidden // 4,
        max_context=128,
    )


def stage(folder: Path, size: Size, seed: int, **recipe: Any) -> Path:
    """The checkpoint of an SFT stage."""
    return train_stage(
        Sft(
            run=parts.Run(name=folder.name, root=str(folder.parent), seed=seed),
            batch_size=size.batch,
            max_length=96,
            micro_batch_tokens=32_768,
            optimizer=parts.Optimizer(lr=size.lr, beta2=0.98, warmup=40, schedule="linear"),
            checkpoints=parts.Checkpoints(every=recipe["steps"]),
            **recipe,
        )
    ).checkpoint


def judge(checkpoint: Path, folder: Path, size: Size, seed: int, budgets: list[int]) -> dict[str, Any]:
    """Greedy answers to held-out problems, with thinking off and on, and on with each budget."""
    held_out = f"arithmetic:count={size.held_out},seed={seed},steps={size.operations},split=test"
    modes: dict[str, tuple[bool, int | None]] = {"off": (False, None), "on": (True, None)}
    modes |= {f"budget {budget}": (True, budget) for budget in budgets}
    by_mode = {}
    for name, (thinking, budget) in modes.items():
        results = evaluate_checkpoint(
            checkpoint,
            parts.Problems(source=held_out, thinking=thinking),
            parts.Sampling(max_new_tokens=72, thinking_budget=budget),
            num_samples=0,
            output=folder / name.replace(" ", "-"),
            seed=seed,
            dtype="float32",
        )
        figures = summarise(results)
        attempts = figures["greedy_attempts"]
        by_mode[name] = {
            "accuracy": figures["greedy"]["value"],
            "tokens": attempts["mean_length"],
            "thinking": attempts["mean_thinking"],
            "forced": attempts["forced"],
        }
    return by_mode


def judge_bars(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, and whether the best share holds all bars."""
    means = {
        share: {mode: fmean(run["shares"][share][mode]["accuracy"] for run in runs) for mode in ("off", "on")}
        for share in runs[0]["shares"]
    }
    off_tokens = max(mode["off"]["thinking"] for run in runs for mode in run["shares"].values())
    without = means.get("0", {}).get("off")
    holding = [
        share
        for share, mean in means.items()
        if mean["on"] >= mean["off"] + LEAST_GAIN
        and without is not None
        and mean["off"] >= without - MOST_LOSS
    ]
    return {
        "accuracy": means,
        "seconds": max(run["seconds"] for run in runs),
        "thinking_tokens_when_off": off_tokens,
        "shares_that_hold": holding,
        "bars_held": bool(holding) and off_tokens == 0,
    }


def draw(runs: list[dict[str, Any]], picture: Path) -> None:
    from foresail.runlog.canvas import CORAL, NAVY, new_figure, quiet, save_figure

    shares = sorted(map(float, runs[0]["shares"]))
    last = f"{shares[-1]:g}"
    budgets = [name for name in runs[0]["shares"][last] if name.startswith("budget")]
    with new_figure((9, 3.4)) as figure:
        left, right = figure.subplots(1, 2)
        for mode, colour in (("on", NAVY), ("off", CORAL)):
            for run in runs:
                accuracy = [run["shares"][f"{share:g}"][mode]["accuracy"] for share in shares]
                label = f"thinking {mode}" if run is runs[0] else None
                left.plot(shares, accuracy, "o-", color=colour, alpha=0.7, label=label)
        left.set_xlabel("share of long chains in the second stage")
        quiet(left, title="Held-out accuracy, greedy")
        left.legend(frameon=False)
        for run in runs:
            modes = run["shares"][last]
            points = [(modes[name]["tokens"], modes[name]["accuracy"]) for name in (*budgets, "on")]
            right.plot(*zip(*points, strict=True), "o-", color=NAVY, alpha=0.7)
        right.set_xlabel("tokens drawn in a response, by thinking budget")
        quiet(right, title=f"Thinking budgets, share {last}")
    save_figure(figure, picture)


if __name__ == "__main__":
    main()
