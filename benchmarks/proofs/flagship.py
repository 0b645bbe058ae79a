"""The flagship runs: SmolLM2-135M-Instruct made better at word problems, GSM8K and small programs.

Each part is one command. It can be cut off at any moment and given again: finished stages and evaluations are read
from their folder, a stage that was under way goes on at its last checkpoint. The last line is JSON; results.json
in the part's folder has the curves as well, for `flagship.py draw`.

    python benchmarks/proofs/flagship.py words --jobs 3              # three seeds at once, before and after
    python benchmarks/proofs/flagship.py gsm8k --gsm8k data/gsm8k    # before SFT, after SFT, after RL
    python benchmarks/proofs/flagship.py programs --jobs 5           # SFT, then rewards all, strict, soft
    python benchmarks/proofs/flagship.py programs --start hard       # the same from a start below 5 % right
    python benchmarks/proofs/flagship.py words --root runs/trial --seeds 0 --rl steps=2 prompts_per_step=4
    python benchmarks/proofs/flagship.py draw runs/flagship/words/results.json docs/words.png
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import Any

from flagship_programs import STARTS, programs
from flagship_runs import FIGURES, Place, finish, judge, reinforce, reinforce_all, spread
from gsm8k_conversations import write_conversations

from foresail.quickstart.stages import Interrupted, train_stage

PARTS = ("words", "gsm8k", "programs")
SEEDS_BEFORE = 8  # evaluation seeds that judge the model word problems start from


def main() -> None:
    options = read_options()
    if options.part == "draw":
        from flagship_curves import draw

        draw(options.results, options.picture)
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: no run is left behind
    place = Place(
        folder=options.root / folder_name(options),
        model=options.model,
        rl=tuple(options.rl),
        sft=tuple(options.sft),
        jobs=options.jobs,
    )
    try:
        if options.part == "words":
            word_problems(place, options.seeds)
        elif options.part == "gsm8k":
            gsm8k(place, options.gsm8k, options.seeds[0])
        else:
            programs(place, options.seeds, options.start)
    except Interrupted as stopped:
        print(stopped)
    except (ValueError, OSError) as error:  # no checkpoint, no data: what to do is in it
        raise SystemExit(f"error: {error}") from error


def folder_name(options: argparse.Namespace) -> str:
    """The part's name; another start has a folder of its own: "programs-hard"."""
    start = getattr(options, "start", "usual")
    return str(options.part) if start == "usual" else f"{options.part}-{start}"


def word_problems(place: Place, seeds: list[int]) -> None:
    """The same held-out problems before and after each seed's run.

    A start that is seldom right is judged by several seeds: one alone would say 5.7 or 7.2 % of the same model.
    """
    recipes = [
        place.rl_recipe("word-problems.toml", f"seed-{seed}", f"run.seed={seed}", f"model.path={place.model}")
        for seed in seeds
    ]
    judged = [judge(recipes[0], place.model, place.folder / f"before-{s}", s) for s in range(SEEDS_BEFORE)]
    before = {name: spread([figures[name]["value"] for figures in judged]) for name in FIGURES}
    results: dict[str, Any] = {"before": judged[0], "before_over_seeds": before}
    results["after"] = reinforce_all(recipes, place.jobs)
    results["times_as_good"] = {
        name: min(after[name]["value"] for after in results["after"].values()) / before[name]["mean"]
        for name in FIGURES
        if before[name]["mean"]
    }
    finish(place.folder, results, [place.folder / recipe.run.name for recipe in recipes])


def gsm8k(place: Place, data: Path, seed: int) -> None:
    """Judged on the test set three times; training sees the training set only."""
    conversations = place.folder / "conversations.jsonl"
    if not conversations.exists():
        write_conversations(data / "train.jsonl.gz", conversations)
    sft = place.sft_recipe("gsm8k-sft.toml", "sft", f"data={conversations}", f"run.seed={seed}")
    rl = place.rl_recipe(
        "gsm8k-rl.toml",
        "rl",
        f"run.seed={seed}",
        f"data.source={data / 'train.jsonl.gz'}",
        f"eval.source={data / 'test.jsonl.gz'}",
        f"model.path={place.model}",
    )
    results = {"before_sft": judge(rl, place.model, place.folder / "before")}
    tuned = train_stage(sft).checkpoint
    results["after_sft"] = judge(rl, tuned, place.folder / "sft" / "after")
    rl = rl.model_copy(update={"model": rl.model.model_copy(update={"path": str(tuned)})})
    results["after_rl"] = reinforce(rl)
    finish(place.folder, results, [place.folder / "sft", place.folder / "rl"])


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parts = parser.add_subparsers(dest="part", required=True)
    for name in PARTS:
        part = parts.add_parser(name)
        part.add_argument("--root", type=Path, default=Path("runs/flagship"))
        part.add_argument("--model", type=Path, default=Path("checkpoints/SmolLM2-135M-Instruct"))
        part.add_argument("--seeds", type=int, nargs="+", default=[0] if name == "gsm8k" else [0, 1, 2])
        part.add_argument("--rl", nargs="*", default=[], help="changes to the RL recipe: optimizer.lr=2e-5 …")
        part.add_argument("--sft", nargs="*", default=[], help="changes to the SFT recipe")
        part.add_argument("--jobs", type=int, default=1, help="RL runs beside each other")
        if name == "gsm8k":
            part.add_argument("--gsm8k", type=Path, required=True, help="folder of train and test.jsonl.gz")
        if name == "programs":
            part.add_argument("--start", choices=STARTS, default="usual", help="hard: below 5 %% right")
    picture = parts.add_parser("draw")
    picture.add_argument("results", type=Path)
    picture.add_argument("picture", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
