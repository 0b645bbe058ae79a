"""Responses and right answers for `math_verifier.py`, from the public files of the shared data folder."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SOLVERS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One response to grade. `expected` is None where the truth is unknown."""

    response: str
    gold: str
    expected: bool | None = None
    name: str = ""


def read_rows(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


# Real responses.


def gsm8k_solutions(data: Path) -> list[Pair]:
    """Four models' solutions to each problem, which end in "A: 18", with labels less the errors found by hand."""
    mislabelled = {
        (error["index"], error["field"])
        for error in json.loads((HERE / "gsm8k_label_errors.json").read_text())["errors"]
    }
    rows = read_rows(data / "math/verifier_gsm8k_model_solutions/example_model_solutions.jsonl.gz")
    return [
        Pair(
            response=row[solver]["solution"],
            gold=row["ground_truth"].rpartition("\n")[2].removeprefix("A: "),
            expected=row[solver]["is_correct"] != ((index, solver) in mislabelled),
            name=f"{index} {solver}",
        )
        for index, row in enumerate(rows)
        for solver in SOLVERS
    ]


def math_solutions(data: Path, count: int) -> list[Pair]:
    """Worked solutions of MATH train, by turns against their own answer and against another problem's."""
    rows = read_rows(data / "math/MATH/train7500.jsonl.gz")
    random.Random(0).shuffle(rows)
    pairs = []
    for row, other, another in zip(*[iter(rows)] * 3, strict=False):
        pairs.append(Pair(response=row["solution"], gold=row["answer"], expected=True))
        if other["answer"] != another["answer"]:
            pairs.append(Pair(response=other["solution"], gold=another["answer"], expected=False))
    return pairs[:count]


def qwen_responses(data: Path) -> list[Pair]:
    """Sampled responses of a Qwen model, against the box most of a problem's eight samples end in.

    The problems' own answers are not in the file, so this set measures speed alone.
    """
    pairs = []
    for row in read_rows(data / "traces/qwen_math_100x8.jsonl.gz"):
        boxes = [last_box(response) for response in row["responses"]]
        gold = Counter(boxes).most_common(1)[0][0]
        pairs += [Pair(response=response, gold=gold) for response in row["responses"]]
    return pairs


def last_box(response: str) -> str:
    r"""last_box(r"so \boxed{\frac{1}{2}}.") -> r"\frac{1}{2}" """
    inside, depth = response.rpartition("\\boxed{")[2], 1
    for place, character in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if not depth:
            return inside[:place]
    return inside


# Classes of answers.

NUMBER = r"-?(\d+|\d{1,3}(,\d{3})+)"
PATTERNS: dict[str, str] = {
    "boxed integers": NUMBER,
    "fractions, decimals, percent": (
        rf"-?\\[dt]?frac\{{-?\d+\}}\{{\d+\}}|{NUMBER}/\d+|-?\d*\.\d+|{NUMBER}(\.\d+)?\\?%"
    ),
    "tuples, sets, intervals, matrices": (
        r"(\\left)?(\(|\[|\\\{).+,.+(\)|\]|\\\})|.*(\\begin\{[pbv]?matrix\}|\\cup).*|-?\d+(, ?-?\d+)+"
    ),
    "radicals and symbolic": r".*(\\sqrt|\\pi|\\ln|\\log|\\sin|\\cos|\\tan|\^|\b[a-z]\b|\d[a-z]\b).*",
}


def answers_by_class(data: Path) -> dict[str, list[str]]:
    """Each distinct answer of MATH, DeepMath and OlympiadBench in the first class whose pattern it matches."""
    answers = [row["answer"] for row in read_rows(data / "math/MATH/train7500.jsonl.gz")]
    answers += [row["answer"] for row in read_rows(data / "math/deepmath_5k/train.jsonl.gz")]
    olympiad = read_rows(data / "math/eval_qwen25math/olympiadbench.jsonl.gz")
    answers += [row["final_answer"][0].replace("$", "") for row in olympiad]
    classes: dict[str, list[str]] = {name: [] for name in PATTERNS}
    for answer in dict.fromkeys(answers):
        damaged = "matrix" in answer and r"\\" not in answer  # rows run together in the file
        if "\\text" in answer or "\\mbox" in answer or len(answer) > 200 or damaged:
            continue
        for name, pattern in PATTERNS.items():
            if re.fullmatch(pattern, answer, re.DOTALL):
                classes[name].append(answer)
                break
    return classes


def class_pairs(answers: list[str], count: int) -> list[Pair]:
    """Half right, every other one of them respelled, and half with another answer of the class.

    Each answer has one part only, so that no grader gains from having parsed it before.
    """
    drawn = random.Random(0).sample(answers, min(len(answers), count // 2 * 3))
    pairs = []
    for number, (answer, gold, other) in enumerate(zip(*[iter(drawn)] * 3, strict=False)):
        right = respell(answer) if number % 2 else answer
        pairs += [
            Pair(response=f"So the final answer is $\\boxed{{{right}}}$.", gold=answer, expected=True),
            Pair(response=f"So the final answer is $\\boxed{{{other}}}$.", gold=gold, expected=False),
        ]
    return pairs


def respell(answer: str) -> str:
    r"""respell(r"\frac{1}{2}x+1") -> r"\dfrac{1}{2}x + 1": the same meaning in other characters."""
    if re.fullmatch(r"-?\d{4,}", answer):
        return f"{int(answer):,}"
    spaced = re.sub(r"(?<=[\w})])([+=])", r" \1 ", answer)
    return spaced.replace("\\frac", "\\dfrac").replace(",", ",\\ ")


# Cases.


def case_files(data: Path) -> dict[str, list[Pair]]:
    """The shared case files and the project's own book, without debatable rows and without mislabelled ones."""
    wrong = {
        row["index"]: row["why"]
        for row in json.loads((HERE / "mathverify_mislabelled.json").read_text())["rows"]
    }
    files = {path.name: path for path in sorted((data / "verifier").glob("*.jsonl"))}
    cases = {name: settled(read_rows(path)) for name, path in files.items()}
    cases["mathverify_cases.jsonl"] = [
        pair for pair in cases["mathverify_cases.jsonl"] if int(pair.name) not in wrong
    ]
    chapters = sorted((ROOT / "tests/maths/cases").glob("*.jsonl"))
    cases["case book"] = [pair for chapter in chapters for pair in settled(read_rows(chapter))]
    return cases


def settled(rows: Iterable[dict[str, Any]]) -> list[Pair]:
    return [
        Pair(response=row["pred"], gold=row["gold"], expected=row["expected"], name=str(index))
        for index, row in enumerate(rows)
        if not row.get("debatable")
    ]
