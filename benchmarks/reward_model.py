"""Reward models at lab scale: trained on right and wrong answers to word problems, do they find the right of 16?

    python benchmarks/reward_model.py --size tiny --device cpu             # a minute: shows that it runs
    python benchmarks/reward_model.py --size lab --device cuda --seeds 3   # an H200

For every seed: a policy from scratch learns from few worked problems (or `--policy` names one), answers many
others, and pairs of its right and wrong answers train four reward models that differ by their seed alone; `foresail
merge` averages them. Then the samples of held-out problems are ranked: best-of-n against majority vote, pass@1 and
pass@n. Everything lies under --output; a command that was cut off goes on. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.data.word_problems import make_problems
from foresail.evaluation.best_of import Candidate, Candidates, best_of_figures
from foresail.evaluation.checkpoint import evaluate_checkpoint
from foresail.evaluation.pair_figures import pair_figures
from foresail.evaluation.pair_run import score_leads
from foresail.evaluation.results import ProblemResult
from foresail.evaluation.reward_plots import try_to_save
from foresail.model.merge import merge
from foresail.recipe import parts
from foresail.recipe.reward import LearnedReward
from foresail.recipe.reward_model import RewardModel
from foresail.recipe.sft import Sft
from foresail.recipe.shape import ModelShape
from foresail.recipe.sources import Conversations, HeldOutPreferences, Preferences
from foresail.records import Problem, single_turn
from foresail.rewards.learned import open_scorer
from foresail.tokenizer.train import train_bpe
from foresail.train.reward_model import run_reward_model
from foresail.train.sft import run_sft

MODELS = 4
BEST_OF = "16"
ANSWER_TOKENS = 40
MAX_LENGTH = 160


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is learned from and by how large a model. The policy sees `shown` worked problems, `asked` others make
    pairs, at most `pairs` of each.
    """

    width: int
    layers: int
    shown: int
    sft_steps: int
    asked: int
    answers: int
    pairs: int
    reward_steps: int
    held_out: int
    samples: int
    batch: int = 64
    sft_rate: float = 1e-3
    reward_rate: float = 3e-4


SIZES = {
    "tiny": Size(  # shows that it runs: far too little to learn arithmetic from
        width=64, layers=2, shown=300, sft_steps=100, asked=100, answers=16, pairs=4, reward_steps=20,
        held_out=20, samples=16, batch=32, sft_rate=3e-3, reward_rate=1e-3,
    ),
    "lab": Size(
        width=384, layers=6, shown=3000, sft_steps=400, asked=12000, answers=12, pairs=5, reward_steps=600,
        held_out=400, samples=64, batch=128,
    ),
}  # fmt: skip


def main() -> None:
    options = read_options()
    begin = time.time()
    found = [measure(options, seed) for seed in range(options.first_seed, options.first_seed + options.seeds)]
    print(
        json.dumps(
            {
                "size": options.size,
                "device": options.device,
                "split": options.split,
                "seconds": round(time.time() - begin, 1),
                "seeds": found,
                "bars": judge(found),
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
    parser.add_argument("--policy", type=Path, help="a checkpoint to sample from; default: one from scratch")
    parser.add_argument(
        "--split",
        choices=("train", "test"),
        default="train",
        help="of the held-out problems; test: sentences and numbers that nobody has seen",
    )
    parser.add_argument("--set", nargs="+", default=(), metavar="KEY=NUMBER", help="of the size: asked=8000")
    parser.add_argument("--output", type=Path, default=Path("runs/reward-model-lab"))
    return parser.parse_args()


def measure(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    size, folder = changed(SIZES[options.size], options.set), options.output / f"{options.size}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    shown, asked, held_out = split_problems(size, options.split, seed)
    watch = Watch()
    policy = options.policy or train_policy(size, folder, shown, options.device, seed)
    watch.lap("policy")
    answers = sample(policy, folder / "asked", asked, size.answers, options.device, seed)
    pairs, kept = make_pairs(answers, asked, size.pairs, seed)
    write_rows(folder / "pairs.jsonl", pairs)
    write_rows(folder / "held_out_pairs.jsonl", kept)
    watch.lap("answers")
    models = {
        f"model {number}": train_reward_model(size, folder, policy, number, options.device)
        for number in range(MODELS)
    }
    watch.lap("reward models")
    shutil.rmtree(folder / "mean", ignore_errors=True)
    merge([*models.values()], folder / "mean")
    models["mean of four"] = folder / "mean"
    tested = sample(policy, folder / "held-out", held_out, size.samples, options.device, seed + 1000)
    watch.lap("held-out samples")
    held_out_pairs = HeldOutPreferences(source=str(folder / "held_out_pairs.jsonl"))
    figures: dict[str, Any] = {}
    for name, model in models.items():
        candidates = score_results(model, tested, held_out, options.device)
        by_size = best_of_figures(candidates, seed=seed)
        of_pairs = pair_figures(score_leads(model, held_out_pairs, device=options.device))
        figures[name] = {"pairs": of_pairs.accuracy, "ece": of_pairs.ece, "n": by_size}
        print(f"seed {seed}, {name}: {in_words(by_size)}, pairs {of_pairs.accuracy:.1%}", flush=True)
        if name == "mean of four":
            print(try_to_save(folder / "reward_model.png", best_of=by_size, pairs=of_pairs), flush=True)
    watch.lap("scoring")
    return summarise(figures, seed=seed, num_pairs=len(pairs), seconds=watch.laps)


def changed(size: Size, changes: Sequence[str]) -> Size:
    """changed(size, ["asked=8000"])"""
    given = (change.split("=") for change in changes)
    return replace(size, **{key: type(getattr(size, key))(float(value)) for key, value in given})


class Watch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.time()

    def lap(self, name: str) -> None:
        now = time.time()
        self.laps[name], self.last = round(now - self.last, 1), now


def split_problems(size: Size, split: str, seed: int) -> tuple[list[Problem], list[Problem], list[Problem]]:
    """No problem is in two of them."""
    every = make_problems(size.shown + size.asked + (size.held_out if split == "train" else 0), seed=seed)
    shown, asked = every[: size.shown], every[size.shown : size.shown + size.asked]
    if split == "test":
        return shown, asked, make_problems(size.held_out, seed=seed, split="test")
    return shown, asked, every[size.shown + size.asked :]


def train_policy(size: Size, folder: Path, shown: Sequence[Problem], device: Any, seed: int) -> Path:
    done = folder / "sft" / "checkpoints" / f"step_{size.sft_steps}"
    if done.is_dir():
        return done
    texts = [text for problem in shown for text in (problem.prompt[-1].content, problem.extra["solution"])]
    tokenizer = train_bpe(texts, vocab_size=512)
    tokenizer.save(folder / "tokenizer")
    rows = [{"prompt": p.prompt[-1].content, "completion": p.extra["solution"]} for p in shown]
    write_rows(folder / "sft.jsonl", rows)
    recipe = Sft(
        run=parts.Run(name="sft", root=str(folder), device=device, seed=seed),
        model=parts.Model(shape=shape_of(size, tokenizer.vocab_size), tokenizer=str(folder / "tokenizer")),
        data=(Conversations(source=str(folder / "sft.jsonl")),),
        steps=size.sft_steps,
        batch_size=size.batch,
        max_length=MAX_LENGTH,
        micro_batch_tokens=32768,
        optimizer=parts.Optimizer(lr=size.sft_rate, warmup=20, schedule="cosine", final_share=0.1),
        checkpoints=parts.Checkpoints(every=10_000),
    )
    shutil.rmtree(folder / "sft", ignore_errors=True)
    return quietly(run_sft, recipe)


def shape_of(size: Size, vocabulary: int) -> ModelShape:
    return ModelShape(
        family="qwen3",
        qk_norm=True,
        vocab_size=vocabulary,
        hidden_size=size.width,
        intermediate_size=8 * size.width // 3 // 16 * 16,
        num_layers=size.layers,
        num_heads=size.width // 32,
        num_kv_heads=size.width // 32,
        head_dim=32,
        max_context=256,
    )


def sample(
    policy: Path, folder: Path, problems: Sequence[Problem], count: int, device: str, seed: int
) -> list[ProblemResult]:
    """`count` answers to each, judged; the greedy one is made as well, and not used."""
    rows = [{"id": p.id, "prompt": p.prompt[-1].content, "answer": p.answer} for p in problems]
    write_rows(folder.with_suffix(".jsonl"), rows)
    return evaluate_checkpoint(
        policy,
        parts.Problems(source=str(folder.with_suffix(".jsonl"))),
        parts.Sampling(max_new_tokens=ANSWER_TOKENS),
        num_samples=count,
        output=folder,
        seed=seed,
        device=device,
    )


def make_pairs(
    results: Sequence[ProblemResult], problems: Sequence[Problem], most: int, seed: int
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Right answers beside wrong ones to the same problem, all different; every tenth problem's are held out."""
    draw = random.Random(seed)
    pairs: tuple[list[dict[str, str]], list[dict[str, str]]] = ([], [])
    for number, (result, problem) in enumerate(zip(results, problems, strict=True)):
        right = sorted({sample.text for sample in result.judged if sample.correct})
        wrong = sorted(
            {sample.text for sample in result.judged if not sample.correct and sample.text.strip()}
        )
        every = [(good, bad) for good in right if good.strip() for bad in wrong]
        for good, bad in draw.sample(every, min(most, len(every))):
            row = {"prompt": problem.prompt[-1].content, "chosen": good, "rejected": bad}
            pairs[number % 10 == 9].append(row)
    return pairs


def train_reward_model(size: Size, folder: Path, policy: Path, seed: int, device: Any) -> Path:
    name, steps = f"reward-model-{seed}", size.reward_steps
    done = folder / name / "checkpoints" / f"step_{steps}"
    if done.is_dir():
        return done
    recipe = RewardModel(
        run=parts.Run(name=name, root=str(folder), device=device, seed=seed),
        model=parts.Model(path=str(policy)),
        data=(Preferences(source=str(folder / "pairs.jsonl")),),
        eval_every=0,
        steps=steps,
        batch_size=size.batch,
        max_length=MAX_LENGTH + ANSWER_TOKENS,
        center=0.01,
        micro_batch_tokens=32768,
        optimizer=parts.Optimizer(lr=size.reward_rate, warmup=20, schedule="cosine", final_share=0.1),
        checkpoints=parts.Checkpoints(every=10_000, dtype="float32"),
    )
    shutil.rmtree(folder / name, ignore_errors=True)
    return quietly(run_reward_model, recipe)


def score_results(
    model: Path, results: Sequence[ProblemResult], problems: Sequence[Problem], device: str
) -> list[Candidates]:
    scorer, found = open_scorer(LearnedReward(path=str(model), batch_tokens=65536), device=device), []
    for result, problem in zip(results, problems, strict=True):
        judged = [attempt for attempt in result.judged if attempt.text.strip()]
        scores = scorer.score([scorer.encode(problem, single_turn(attempt.text)) for attempt in judged])
        candidates = [
            Candidate(answer=attempt.answer, correct=attempt.correct, score=score)
            for attempt, score in zip(judged, scores, strict=True)
        ]
        unjudged = len(result.samples) - len(candidates)
        found.append(Candidates(problem_id=result.problem_id, samples=tuple(candidates), unjudged=unjudged))
    return found


def summarise(
    figures: dict[str, Any], *, seed: int, num_pairs: int, seconds: dict[str, float]
) -> dict[str, Any]:
    mean, singles = figures["mean of four"], [figures[name] for name in figures if name != "mean of four"]
    best = max(single["n"][BEST_OF]["best_of"]["value"] for single in singles)
    return {
        "seed": seed,
        "pairs": num_pairs,
        "pass@1": mean["n"]["1"]["pass"]["value"],
        f"majority@{BEST_OF}": mean["n"][BEST_OF]["majority"]["value"],
        f"pass@{BEST_OF}": mean["n"][BEST_OF]["pass"]["value"],
        f"best-of-{BEST_OF}": {
            "each": [round(single["n"][BEST_OF]["best_of"]["value"], 4) for single in singles],
            "mean of four": mean["n"][BEST_OF]["best_of"]["value"],
            "best one": best,
        },
        "lead over majority": mean["n"][BEST_OF]["lead"],
        "pair accuracy": {
            "each": [round(single["pairs"], 4) for single in singles],
            "mean of four": mean["pairs"],
        },
        "ece": mean["ece"],
        "by n": {
            size: {name: round(row[name]["value"], 4) for name in ("best_of", "majority", "pass")}
            for size, row in mean["n"].items()
        },
        "seconds": seconds,
    }


def judge(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, and whether they pass."""
    of = f"best-of-{BEST_OF}"
    best, majority, one = (
        fmean(row[of]["mean of four"] for row in found),
        fmean(row[f"majority@{BEST_OF}"] for row in found),
        fmean(row["pass@1"] for row in found),
    )
    single = fmean(row[of]["best one"] for row in found)
    return {
        of: best,
        "majority": majority,
        "pass@1": one,
        "lift of pass@1": best / one if one else None,
        "best one of four": single,
        "beats majority": best > majority,
        "lifts pass@1 by half": best >= 1.5 * one,
        "mean of four no worse than the best": best >= single,
    }


def in_words(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    row = figures[BEST_OF]
    values = ", ".join(f"{name} {row[name]['value']:.1%}" for name in ("best_of", "majority", "pass"))
    return f"pass@1 {figures['1']['pass']['value']:.1%}; of {BEST_OF}: {values}"


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def quietly(stage: Any, recipe: Any) -> Path:
    """The checkpoint of a run whose lines nobody reads; the last one tells how it ended."""
    lines = StringIO()
    with redirect_stdout(lines):
        outcome = stage(recipe)
    told = [line for line in lines.getvalue().splitlines() if "loss" in line]
    print(told[-1] if told else f"{recipe.run.name} is done", flush=True)
    checkpoint: Path = outcome.checkpoint
    return checkpoint


if __name__ == "__main__":
    main()
