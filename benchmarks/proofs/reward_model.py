"""Reward models at lab scale: trained on right and wrong answers to word problems, do they find the right of 16?

    python benchmarks/proofs/reward_model.py --size tiny --device cpu              # a minute: shows that it runs
    python benchmarks/proofs/reward_model.py --size lab --device cuda --seeds 3    # an H200

For every seed: a policy from scratch that is unsure of its answers (`word_lab`) answers many problems, and pairs of
its right and wrong answers train four reward models from its own weights. They learn together for `together` steps,
then each for `apart` steps with a seed of its own; `foresail merge` averages them. Then the samples of held-out
problems are ranked: best-of-n against majority vote, pass@1 and pass@n.

The mean is compared with the best of the four, which is known only after looking, with the one that held-out pairs
choose, and with the four on average. The last line is JSON, figures of a seed are in its result.json; a command
that was cut off goes on with what is finished (`lab_seeds`).
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from lab_plot import draw_arms
from lab_seeds import every_seed, lab_parser, size_of, tell
from word_lab import CONTEXT, SIZES, Lab, Size, sample, write_rows

from foresail.evaluation.best_of import Candidate, Candidates, best_of_figures
from foresail.evaluation.pair_figures import pair_figures
from foresail.evaluation.pair_run import score_leads
from foresail.evaluation.results import ProblemResult
from foresail.evaluation.reward_plots import try_to_save
from foresail.model.merge import merge
from foresail.recipe.stages.reward_model import RewardModel
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import LearnedReward
from foresail.recipe.tables.sources import HeldOutPreferences, Preferences
from foresail.records import Problem, single_turn
from foresail.rewards.learned import open_scorer

MODELS = 4
MEAN = "mean of four"
BEST_OF = "16"


@dataclass(frozen=True, kw_only=True)
class RewardSize(Size):
    """The `asked` problems are answered `answers` times each and make at most `pairs` pairs each; those held out
    have `candidates` to choose from.
    """

    answers: int
    pairs: int
    together: int
    apart: int
    candidates: int
    reward_batch: int
    reward_rate: float


REWARD_SIZES = {
    "tiny": RewardSize(**vars(SIZES["tiny"]) | {
        "answers": 16, "pairs": 4, "together": 6, "apart": 6, "candidates": 16, "reward_batch": 16,
        "reward_rate": 1e-3,
    }),
    "lab": RewardSize(**vars(SIZES["lab"]) | {
        "goal": 0.35, "asked": 20000, "held_out": 400, "answers": 6, "pairs": 6, "together": 900, "apart": 150,
        "candidates": 64, "reward_batch": 256, "reward_rate": 5e-4,
    }),
}  # fmt: skip


def main() -> None:
    options = read_options()
    size = size_of(options, REWARD_SIZES)
    results = every_seed(options, lambda folder, seed: measure(options, size, folder, seed))
    if options.draw:
        draw(results, options.draw)
    tell(options, results, bars=judge(results))


def read_options() -> argparse.Namespace:
    parser = lab_parser(__doc__, REWARD_SIZES, "runs/reward-model-lab")
    parser.add_argument("--policy", type=Path, help="a checkpoint to sample from; default: one from scratch")
    parser.add_argument(
        "--split",
        choices=("train", "test"),
        default="train",
        help="of the held-out problems; test: sentences and numbers that nobody has seen",
    )
    return parser.parse_args()


def measure(options: argparse.Namespace, size: RewardSize, folder: Path, seed: int) -> dict[str, Any]:
    lab = Lab(folder=folder, size=size, device=options.device, seed=seed, split=options.split)
    watch = Watch()
    lab.prepare()
    policy = options.policy or lab.start()
    watch.lap("policy")
    num_pairs = prepare_pairs(lab, size, policy)
    watch.lap("answers")
    models = {f"model {number}": path for number, path in enumerate(train_models(lab, size, policy))}
    watch.lap("reward models")
    shutil.rmtree(folder / "mean", ignore_errors=True)
    merge([*models.values()], folder / "mean")
    models[MEAN] = folder / "mean"
    problems = lab.problems("held-out")
    tested = sample(lab, policy, problems, size.candidates)
    watch.lap("held-out samples")
    held_out_pairs = HeldOutPreferences(source=str(lab.path("held-out-pairs")))
    figures: dict[str, Any] = {}
    for name, model in models.items():
        by_size = best_of_figures(score_results(model, tested, problems, options.device), seed=seed)
        of_pairs = pair_figures(score_leads(model, held_out_pairs, device=options.device).leads)
        figures[name] = {"pairs": of_pairs.accuracy, "ece": of_pairs.ece, "n": by_size}
        print(f"seed {seed}, {name}: {in_words(by_size)}, pairs {of_pairs.accuracy:.1%}", flush=True)
        if name == MEAN:
            print(try_to_save(folder / "reward_model.png", best_of=by_size, pairs=of_pairs), flush=True)
    watch.lap("scoring")
    return {
        "start": {"policy": policy.parent.parent.name, "tried": lab.tried()},
        "pairs": num_pairs,
        **summarise(figures),
        "laps": watch.laps,
    }


class Watch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.time()

    def lap(self, name: str) -> None:
        now = time.time()
        self.laps[name], self.last = round(now - self.last, 1), now


def prepare_pairs(lab: Lab, size: RewardSize, policy: Path) -> int:
    """How many there are to learn from; the files are not written again."""
    learned, held_out = lab.path("pairs"), lab.path("held-out-pairs")
    if not learned.exists():
        problems = lab.problems("asked")
        pairs, held_out_pairs = make_pairs(
            sample(lab, policy, problems, size.answers), problems, size.pairs, lab.seed
        )
        write_rows(held_out, held_out_pairs)
        write_rows(learned, pairs)
    with learned.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def make_pairs(
    results: Sequence[ProblemResult], problems: Sequence[Problem], max_pairs: int, seed: int
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
        for good, bad in draw.sample(every, min(max_pairs, len(every))):
            row = {"prompt": problem.prompt[-1].content, "chosen": good, "rejected": bad}
            pairs[number % 10 == 9].append(row)
    return pairs


def train_models(lab: Lab, size: RewardSize, policy: Path) -> list[Path]:
    """A mean of weights wants models that have not gone far apart: hence the steps together."""
    start = policy
    if size.together:
        start = lab.run(reward_recipe(lab, size, "together", policy, size.together)).checkpoint
    falling: dict[str, Any] = {"schedule": "cosine", "final_share": 0.1}
    recipes = [
        reward_recipe(lab, size, f"model-{number}", start, size.apart, seed=1 + number, **falling)
        for number in range(MODELS)
    ]
    return [lab.run(recipe).checkpoint for recipe in recipes]


def reward_recipe(
    lab: Lab, size: RewardSize, name: str, start: Path, steps: int, *, seed: int = 0, **schedule: Any
) -> RewardModel:
    return RewardModel(
        run=lab.run_settings(name).model_copy(update={"seed": 10 * lab.seed + seed}),
        model=parts.Model(path=str(start)),
        data=(Preferences(source=str(lab.path("pairs"))),),
        eval_every=0,
        steps=steps,
        batch_size=size.reward_batch,
        max_length=CONTEXT,
        center=0.01,
        micro_batch_tokens=65536,
        optimizer=parts.Optimizer(lr=size.reward_rate, warmup=10, **schedule),
        checkpoints=parts.Checkpoints(every=100_000, dtype="float32"),
    )


def score_results(
    model: Path, results: Sequence[ProblemResult], problems: Sequence[Problem], device: str
) -> list[Candidates]:
    """Each text of a problem is scored once, all of them in one call."""
    scorer = open_scorer(LearnedReward(path=str(model), dtype="float32", batch_tokens=65536), device=device)
    texts = {
        (number, attempt.text): None
        for number, result in enumerate(results)
        for attempt in result.judged
        if attempt.text.strip()
    }
    encoded = [scorer.encode(problems[number], single_turn(text)) for number, text in texts]
    scores = dict(zip(texts, scorer.score(encoded), strict=True))
    scored = []
    for number, result in enumerate(results):
        candidates = [
            Candidate(answer=attempt.answer, correct=attempt.correct, score=scores[number, attempt.text])
            for attempt in result.judged
            if (number, attempt.text) in scores
        ]
        unjudged = len(result.samples) - len(candidates)
        scored.append(Candidates(problem_id=result.problem_id, samples=tuple(candidates), unjudged=unjudged))
    return scored


def summarise(figures: dict[str, Any]) -> dict[str, Any]:
    mean, singles = figures[MEAN], [figures[name] for name in figures if name != MEAN]
    best_of = [single["n"][BEST_OF]["best_of"]["value"] for single in singles]
    chosen = max(range(len(singles)), key=lambda number: singles[number]["pairs"])
    return {
        "pass@1": mean["n"]["1"]["pass"]["value"],
        f"majority@{BEST_OF}": mean["n"][BEST_OF]["majority"]["value"],
        f"pass@{BEST_OF}": mean["n"][BEST_OF]["pass"]["value"],
        f"best-of-{BEST_OF}": {
            "each": [round(value, 4) for value in best_of],
            MEAN: mean["n"][BEST_OF]["best_of"]["value"],
            "best one": max(best_of),
            "chosen by pairs": best_of[chosen],
            "singles": fmean(best_of),
        },
        "lead over majority": mean["n"][BEST_OF]["lead"],
        "pair accuracy": {
            "each": [round(single["pairs"], 4) for single in singles],
            MEAN: mean["pairs"],
        },
        "ece": mean["ece"],
        "by n": {
            size: {name: round(row[name]["value"], 4) for name in ("best_of", "majority", "pass")}
            for size, row in mean["n"].items()
        },
    }


def judge(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, and whether they pass."""
    of = f"best-of-{BEST_OF}"
    best = {
        key: fmean(row[of][key] for row in results)
        for key in (MEAN, "best one", "chosen by pairs", "singles")
    }
    majority = fmean(row[f"majority@{BEST_OF}"] for row in results)
    one = fmean(row["pass@1"] for row in results)
    return {
        of: best,
        "majority": majority,
        f"pass@{BEST_OF}": fmean(row[f"pass@{BEST_OF}"] for row in results),
        "pass@1": one,
        "lift of pass@1": best[MEAN] / one if one else None,
        "beats majority": best[MEAN] > majority,
        "lifts pass@1 by half": best[MEAN] >= 1.5 * one,
        "mean of four no worse than the best": best[MEAN] >= best["best one"],
        "mean of four no worse than the one chosen by pairs": best[MEAN] >= best["chosen by pairs"],
    }


def in_words(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    row = figures[BEST_OF]
    values = ", ".join(f"{name} {row[name]['value']:.1%}" for name in ("best_of", "majority", "pass"))
    return f"pass@1 {figures['1']['pass']['value']:.1%}; of {BEST_OF}: {values}"


def draw(results: Sequence[dict[str, Any]], picture: Path) -> None:
    names = {
        "any is right (pass@n)": "pass",
        "best of n by the mean of four": "best_of",
        "majority": "majority",
    }
    arms = {
        label: [[(int(size), row[name]) for size, row in seed["by n"].items()] for seed in results]
        for label, name in names.items()
    }
    draw_arms(picture, arms, title="Share of problems solved", below="samples a problem, n", base=2)


if __name__ == "__main__":
    main()
