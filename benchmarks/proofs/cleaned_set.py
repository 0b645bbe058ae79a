"""GRPO on a raw set of problems and on the same set after curation: held-out accuracy at equal samples.

    python benchmarks/proofs/cleaned_set.py --size tiny                       # a minute: shows that it runs
    python benchmarks/proofs/cleaned_set.py --size small --seeds 5 --rate 5e-4       # 10 minutes of a core
    python benchmarks/proofs/cleaned_set.py --size lab --seeds 3 --prepare    # data alone; needs the extra curate
    python benchmarks/proofs/cleaned_set.py --size lab --device cuda --seeds 3

Problems are those of `word_lab`, each with a worked solution. Of the raw set a share has one of the faults that
public sets have (FAULTS): answers that a misreading gives, problems without their numbers that refer to a figure,
multiple choice, yes or no, two questions at once, copies with the same and with another answer. The cleaned set is
what the steps problem_form, check_answers and same_problems leave of it; `caught` has, of each planted fault and of
the sound problems, how many there are and how many were dropped. The third arm has the sound problems alone. All
start from one policy, draw the same number of samples, and are measured on the same held-out problems, without
faults. Groups that teach nothing are kept, so that samples are equal step by step.

The data is made where it is missing. A machine without the extra `curate` needs cleaned.jsonl and planted.json of
each seed's folder, which --prepare writes. The last line is JSON; a command that was cut off goes on with what is
finished (`lab_seeds`).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lab_plot import draw_arms
from lab_seeds import every_seed, lab_parser, size_of, tell
from word_lab import SIZES as LAB_SIZES
from word_lab import Lab, Size, curve, smooth, write_rows

from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.records import Problem

Row = dict[str, str]
STEPS = ("problem_kind", "problem_form", "check_answers", "same_problems")
NO_NUMBER = "some"
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # by the number of seeds
SIZES = LAB_SIZES | {
    # A CPU's: numbers up to 9, and a start that has seen more misread problems than right ones.
    "small": Size(
        width=64, layers=2, shown=6400, tries=(320,), goal=0.3, tried_on=100, teacher_steps=0, asked=3000,
        held_out=300, prompts=32, samples=8, steps=32, eval_every=4, batch=32, sft_rate=5e-3, largest=9,
        misread=0.6,
    ),
}  # fmt: skip


def main() -> None:
    options = read_options()
    size = size_of(options, SIZES)
    if options.prepare:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            lab = Lab(folder=options.output / f"{options.size}-{seed}", size=size, device="cpu", seed=seed)
            print(seed, json.dumps(prepare(lab)))
        return
    results = every_seed(options, lambda folder, seed: measure(options, size, folder, seed))
    if options.draw:
        draw(results, options.draw)
    tell(options, results, **judge(results))


def read_options() -> argparse.Namespace:
    parser = lab_parser(__doc__, SIZES, "runs/cleaned-set")
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate of GRPO")
    parser.add_argument("--arms", nargs="+", default=["raw", "cleaned", "sound"])
    parser.add_argument("--prepare", action="store_true", help="make the data and stop")
    return parser.parse_args()


# The raw set.


def other_operation(row: Row, rng: random.Random) -> list[Row]:
    """The answer of a misreading, as a careless labeller has it; the solution is right."""
    one, other = numbers_of(row)
    wrong = [value for value in (one + other, one - other, one * other) if str(value) != row["answer"]]
    return [row | {"answer": str(rng.choice(wrong))}]


def without_numbers(row: Row, rng: random.Random) -> list[Row]:
    text = row["prompt"]
    for number in numbers_of(row):
        text = text.replace(str(number), NO_NUMBER, 1)
    words = rng.choice(("As shown in the figure, ", "See the picture below. ", "In the diagram, "))
    return [without_solution(row | {"prompt": words + text})]


def with_options(row: Row, rng: random.Random) -> list[Row]:
    values = [row["answer"], *rng.sample([str(number) for number in range(2, 200)], 3)]
    rng.shuffle(values)
    options = " ".join(f"({letter}) {value}" for letter, value in zip("ABCD", values, strict=True))
    letter = "ABCD"[values.index(row["answer"])]
    return [without_solution(row | {"prompt": f"{row['prompt']} {options}", "answer": letter})]


def as_yes_or_no(row: Row, rng: random.Random) -> list[Row]:
    bound = int(row["answer"]) + rng.choice((-3, 3))
    answer = "Yes" if int(row["answer"]) > bound else "No"
    return [without_solution(row | {"prompt": f"{row['prompt']} Is it more than {bound}?", "answer": answer})]


def with_two_parts(row: Row, rng: random.Random) -> list[Row]:
    return [row | {"prompt": f"(1) What is {rng.randint(2, 9)} + {rng.randint(2, 9)}? (2) {row['prompt']}"}]


def with_copy(row: Row, rng: random.Random) -> list[Row]:
    return [row, row | {"id": f"{row['id']}-copy", "prompt": f" {row['prompt']}"}]


def with_other_copy(row: Row, rng: random.Random) -> list[Row]:
    """Two labels for one problem, and no solution that says which is right."""
    wrong = other_operation(row, rng)[0]
    return [without_solution(row), without_solution(wrong | {"id": f"{row['id']}-copy"})]


# Shares of the problems, as far as public sets have them (docs/curate-problems.md).
FAULTS: dict[str, tuple[float, Callable[[Row, random.Random], list[Row]]]] = {
    "other operation": (0.10, other_operation),
    "no numbers": (0.04, without_numbers),
    "options": (0.05, with_options),
    "yes or no": (0.06, as_yes_or_no),
    "two parts": (0.02, with_two_parts),
    "copy": (0.05, with_copy),
    "other copy": (0.03, with_other_copy),
}
SOUND = "sound"


def raw_rows(problems: Sequence[Problem], seed: int) -> Iterator[tuple[str, Row]]:
    """Each problem, or what a fault makes of it, with the fault's name. Of copies the first is sound."""
    rng = random.Random(f"faults {seed}")
    for problem in problems:
        row = {
            "id": problem.id,
            "prompt": problem.prompt[-1].content,
            "answer": problem.answer,
            "solution": f"{problem.extra['solution']} \\boxed{{{problem.answer}}}",
        }
        drawn = rng.random()
        for name, (share, change) in FAULTS.items():
            if drawn < share:
                for place, changed in enumerate(change(row, rng)):
                    yield (SOUND if name == "copy" and not place else name), changed
                break
            drawn -= share
        else:
            yield SOUND, row


def numbers_of(row: Row) -> tuple[int, int]:
    """Of the prompt, in its order."""
    numbers = [int(digits) for digits in re.findall(r"\d+", row["prompt"])]
    return numbers[0], numbers[-1]


def without_solution(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != "solution"}


def prepare(lab: Lab) -> dict[str, Any]:
    """raw.jsonl, sound.jsonl and cleaned.jsonl; what of the planted faults was caught, and what else was lost."""
    counts_file = lab.folder / "planted.json"
    if not lab.path("raw").exists() or not counts_file.exists():
        lab.prepare()
        made = lab_problems(lab)
        planted = [*raw_rows(made, lab.seed)]
        write_rows(lab.path("raw"), (row for _, row in planted))
        write_rows(lab.path("sound"), (row for name, row in planted if name == SOUND))
        if counts_file.exists():
            return dict(json.loads(counts_file.read_text()))
        cleaned = clean(lab)
        write_rows(lab.path("cleaned"), cleaned)
        kept = {row["id"] for row in cleaned}
        total = Counter(name for name, _ in planted)
        left = Counter(name for name, row in planted if row["id"] in kept)
        counts = {name: [total[name], total[name] - left[name]] for name in total}
        counts_file.write_text(json.dumps({"rows": len(planted), "kept": len(cleaned), "caught": counts}))
    counted: dict[str, Any] = json.loads(counts_file.read_text())
    return counted


def lab_problems(lab: Lab) -> list[Problem]:
    """Those that `asked` names, with their solutions."""
    size = lab.size
    own = size.held_out if lab.split == "train" else 0
    every = lab.make(size.shown + size.tried_on + size.asked + own)
    return every[size.shown + size.tried_on : size.shown + size.tried_on + size.asked]


def clean(lab: Lab) -> list[Row]:
    from foresail.curate.curation import curate
    from foresail.curate.recipe import build_curation

    out = lab.folder / "curated"
    if out.exists():
        shutil.rmtree(out)
    table = {
        "out": str(out),
        "source": [{"path": str(lab.path("raw")), "holds": "problems"}],
        "step": [{"name": name} for name in STEPS],
        "sink": [{"compression": "none"}],
        "cluster": {"workers": 1},
    }
    curate(build_curation(table))
    lines = [line for file in sorted((out / "documents").iterdir()) for line in file.read_text().splitlines()]
    shutil.rmtree(out)
    rows = [json.loads(line) for line in lines]
    return [{key: row[key] for key in ("id", "prompt", "answer")} for row in rows]


# The runs.


def measure(options: argparse.Namespace, size: Size, folder: Path, seed: int) -> dict[str, Any]:
    lab = Lab(folder=folder, size=size, device=options.device, seed=seed)
    planted = prepare(lab)
    start = lab.start()
    arms = {}
    for name in options.arms:
        recipe = lab.grpo(
            name,
            start,
            options.rate,
            data=[{"source": str(lab.path(name)), "too_long": "drop"}],
            dynamic_sampling=DynamicSampling(enabled=False),
        )
        points = curve(lab.run(recipe).run, size.samples)
        arms[name] = {
            "last": round(fmean(accuracy for _, accuracy in points[-3:]), 4),
            "mean": round(fmean(accuracy for _, accuracy in points), 4),
            "samples": points[-1][0],
            "curve": points,
        }
        print(f"seed {seed}, {name}: {arms[name] | {'curve': '…'}}", flush=True)
    return {
        "start": {"policy": start.parent.parent.name, "tried": lab.tried()},
        "planted": planted,
        "arms": arms,
    }


def judge(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`early`: at the first evaluation after the start; `mean`: of the curve; `last`: of its last three points."""
    arms = {
        name: {key: [seed["arms"][name][key] for seed in results] for key in ("last", "mean", "samples")}
        | {"early": [round(seed["arms"][name]["curve"][1][1], 4) for seed in results]}
        for name in results[0]["arms"]
    }
    figures: dict[str, Any] = {"arms": arms, "planted": [seed["planted"] for seed in results]}
    others = [name for name in arms if name != "raw"] if "raw" in arms else []
    figures["over raw"] = {
        name: {key: paired(arms[name][key], arms["raw"][key]) for key in ("early", "mean", "last")}
        for name in others
    }
    if "cleaned" in others:
        gains = figures["over raw"]["cleaned"]["last"]["gains"]
        figures["bars"] = {"cleaned beats raw on every seed": min(gains) > 0}
    return figures


def paired(figures: Sequence[float], before: Sequence[float]) -> dict[str, Any]:
    """What each seed gains, the mean, and how far its 95 % interval reaches (Student's t)."""
    gains = [round(after - own, 4) for own, after in zip(before, figures, strict=True)]
    reach = None
    if len(gains) in T_95:
        reach = round(T_95[len(gains)] * stdev(gains) / sqrt(len(gains)), 4)
    return {"gains": gains, "mean": round(fmean(gains), 4), "reach": reach}


def draw(results: Sequence[dict[str, Any]], picture: Path) -> None:
    arms = {name: [smooth(seed["arms"][name]["curve"]) for seed in results] for name in results[0]["arms"]}
    draw_arms(picture, arms, title="Held-out accuracy, greedy", below="samples drawn")


if __name__ == "__main__":
    main()
