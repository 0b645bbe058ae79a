"""The maths verifier beside Math-Verify: speed, agreement with labels, case files, gold answers, hostile inputs.

Both graders judge the same pairs in one run. What counts is CPU time, children included, after a warm-up on
other pairs. Every pair is judged once, and MATH's and the classes' answers do not come again, so that caches
help only where they help in training: in groups of responses to one problem. Math-Verify is called with its
defaults and may live in an interpreter of its own. The last line is JSON.

    python benchmarks/verifier/math_verifier.py --peer-python PATH/TO/python    # math-verify[antlr4_13_2]==0.9.0
    python benchmarks/verifier/math_verifier.py --quick                         # a small run
    python benchmarks/verifier/math_verifier.py --no-peer --sections cases hostile
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from cpu_clock import cpu_seconds
from math_pairs import (
    HERE,
    ROOT,
    Pair,
    answers_by_class,
    case_files,
    class_pairs,
    gsm8k_solutions,
    math_solutions,
    qwen_responses,
)

from foresail.evaluation.answer_check import check_answers
from foresail.maths.verdict import grade
from foresail.records import Status

SECTIONS = ("real", "classes", "labels", "cases", "gold", "hostile")
WARM_UP = 40  # pairs
GOLD = {
    "MATH train": "MATH/train7500",
    "GSM8K train": "gsm8k/train",
    "DeepMath": "deepmath_5k/train",
    "OlympiadBench": "eval_qwen25math/olympiadbench",
    "Minerva": "minerva_math_with_answers/test",
}


def main() -> None:
    options = read_options()
    figures: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    measures = {
        "real": measure_real_responses,
        "classes": measure_classes,
        "labels": measure_labels,
        "cases": measure_cases,
        "gold": measure_gold_answers,
        "hostile": measure_hostile_inputs,
    }
    for section in options.sections:
        figures[section] = measures[section](options)
    print(json.dumps(figures))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared/data", help="the shared data folder"
    )
    parser.add_argument(
        "--peer-python", help="an interpreter with Math-Verify; without it, this one's if there"
    )
    parser.add_argument("--no-peer", action="store_true", help="measure Foresail alone")
    parser.add_argument("--peer-unlimited", action="store_true", help="switch Math-Verify's time limits off")
    parser.add_argument(
        "--pairs", type=int, default=3000, help="pairs a set, at most; label agreement takes all"
    )
    parser.add_argument("--quick", action="store_true", help="100 pairs a set")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"no data at {options.data}; name the folder with --data")
    if options.quick:
        options.pairs = 100
    if not options.no_peer and not options.peer_python:
        if importlib.util.find_spec("math_verify") is None:
            parser.error("Math-Verify is not in this interpreter; use --peer-python PATH or --no-peer")
        options.peer_python = sys.executable
    return options


# The two graders.


def ours(pairs: list[Pair], warm_up: list[Pair]) -> tuple[list[Status], float]:
    """Statuses and CPU seconds."""
    for pair in warm_up:
        grade(pair.response, pair.gold)
    start = cpu_seconds()
    statuses = [grade(pair.response, pair.gold).status for pair in pairs]
    return statuses, cpu_seconds() - start


def theirs(pairs: list[Pair], warm_up: list[Pair], options: argparse.Namespace) -> tuple[list[bool], float]:
    request = {
        "limited": not options.peer_unlimited,
        "warm_up": [(pair.response, pair.gold) for pair in warm_up],
        "pairs": [(pair.response, pair.gold) for pair in pairs],
    }
    done = subprocess.run(
        [options.peer_python, HERE / "mathverify_peer.py"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    reply = json.loads(done.stdout)
    return reply["verdicts"], reply["seconds"]


def compare(name: str, pairs: list[Pair], options: argparse.Namespace) -> dict[str, Any]:
    """Both graders on the same pairs: verdicts per CPU second, and how often they are right where that is known."""
    warm_up, timed = pairs[:WARM_UP], pairs[WARM_UP:][: options.pairs]
    statuses, seconds = ours(timed, warm_up)
    figures: dict[str, Any] = {
        "pairs": len(timed),
        "per_second": round(len(timed) / seconds, 1),
        "right": share_right([status == "correct" for status in statuses], timed),
        "statuses": dict(Counter(statuses)),
        "misses": [
            f"gold {pair.gold}, {status}, response …{pair.response[-100:]}"
            for pair, status in zip(timed, statuses, strict=True)
            if pair.expected is not None and (status == "correct") != pair.expected
        ],
    }
    if not options.no_peer:
        verdicts, peer_seconds = theirs(timed, warm_up, options)
        figures |= {
            "peer_per_second": round(len(timed) / peer_seconds, 1),
            "peer_right": share_right(verdicts, timed),
            "ratio": round(peer_seconds / seconds, 1),
        }
    print(
        f"  {name:<36}{len(timed):>6} pairs{figures['per_second']:>12,.0f}/s{percent(figures['right']):>9}"
        + ("" if options.no_peer else peer_columns(figures)),
        flush=True,
    )
    return figures


def peer_columns(figures: dict[str, Any]) -> str:
    return (
        f"   Math-Verify{figures['peer_per_second']:>8,.0f}/s{percent(figures['peer_right']):>9}"
        f"   {figures['ratio']:.1f}x"
    )


def share_right(verdicts: list[bool], pairs: list[Pair]) -> float | None:
    known = [
        verdict == pair.expected
        for verdict, pair in zip(verdicts, pairs, strict=True)
        if pair.expected is not None
    ]
    return round(sum(known) / len(known), 5) if known else None


def percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


# The sections.


def measure_real_responses(options: argparse.Namespace) -> dict[str, Any]:
    print("\nReal responses: verdicts per CPU second, share right")
    sets = {
        "GSM8K model solutions": gsm8k_solutions(options.data),
        "MATH solutions": math_solutions(options.data, options.pairs + WARM_UP),
        "Qwen responses": qwen_responses(options.data),
    }
    return {name: compare(name, pairs, options) for name, pairs in sets.items()}


def measure_classes(options: argparse.Namespace) -> dict[str, Any]:
    print("\nClasses of answers: verdicts per CPU second, share right")
    classes = answers_by_class(options.data)
    return {
        name: compare(name, class_pairs(answers, options.pairs + WARM_UP), options)
        for name, answers in classes.items()
    }


def measure_labels(options: argparse.Namespace) -> dict[str, Any]:
    print("\nAgreement with the labels of GSM8K model solutions, less the label errors listed by hand")
    pairs = gsm8k_solutions(options.data)[: options.pairs if options.quick else None]
    statuses, _ = ours(pairs, [])
    misses = [
        f"{pair.name}: gold {pair.gold}, {status}, labelled {'right' if pair.expected else 'wrong'}"
        for pair, status in zip(pairs, statuses, strict=True)
        if (status == "correct") != pair.expected
    ]
    print(f"  {len(pairs) - len(misses):,} of {len(pairs):,}, {1 - len(misses) / len(pairs):.3%}")
    for miss in misses[:20]:
        print(f"    {miss}")
    return {"pairs": len(pairs), "agreement": round(1 - len(misses) / len(pairs), 5), "misses": misses}


def measure_cases(options: argparse.Namespace) -> dict[str, Any]:
    print("\nCase files, without debatable and mislabelled rows: share right")
    figures: dict[str, dict[str, Any]] = {}
    for name, pairs in case_files(options.data).items():
        statuses, _ = ours(pairs, [])
        misses = [
            pair.name if name != "case book" else f"{pair.gold} <- {pair.response}"
            for pair, status in zip(pairs, statuses, strict=True)
            if (status == "correct") != pair.expected
        ]
        figures[name] = {
            "rows": len(pairs),
            "right": round(1 - len(misses) / len(pairs), 5),
            "misses": misses,
        }
        line = f"  {name:<36}{len(pairs):>6} rows{figures[name]['right']:>10.2%}"
        if not options.no_peer and not options.quick:
            verdicts, _ = theirs(pairs, [], options)
            figures[name]["peer_right"] = share_right(verdicts, pairs)
            line += f"   Math-Verify{percent(figures[name]['peer_right']):>9}"
        print(f"{line}   misses: {', '.join(misses[:12])[:200]}", flush=True)
    return figures


def measure_gold_answers(options: argparse.Namespace) -> dict[str, Any]:
    """What `foresail data check-answers` counts, on five public sets."""
    print("\nGold answers: right against themselves in a box, right against what their own solution states")
    figures = {}
    for name, path in GOLD.items():
        checks = check_answers(options.data / f"math/{path}.jsonl.gz", workers=0)
        counts = {
            against: Counter(check.verdict.status for check in checks if check.against == against)
            for against in ("itself", "its solution")
        }
        figures[name] = {against: dict(count) for against, count in counts.items()}
        itself, solution = counts["itself"], counts["its solution"]
        stated = solution.total() - solution["unparsable"]
        rate = f"{solution['correct'] / stated:.2%} of {stated}" if stated else "none stated"
        print(f"  {name:<18}{itself.total():>6} answers   {itself['correct'] / itself.total():.2%}   {rate}")
    return figures


def measure_hostile_inputs(options: argparse.Namespace) -> dict[str, Any]:
    """Every hostile text as response, in a box, as gold answer and against itself: CPU milliseconds each."""
    texts: dict[str, str] = runpy.run_path(str(ROOT / "tests/maths/hostile_answers.py"))["hostile_texts"]()
    costs: list[tuple[float, str, str]] = []
    for name, text in texts.items():
        boxed = f"\\boxed{{{text}}}"
        pairs = {
            "bare": (text, "7"),
            "boxed": (boxed, "7"),
            "gold": ("\\boxed{7}", text),
            "both": (boxed, text),
        }
        for place, (response, gold) in pairs.items():
            start = cpu_seconds()
            status = status_or_error(response, gold)
            costs.append((1000 * (cpu_seconds() - start), f"{name}, {place}", status))
    costs.sort(reverse=True)
    milliseconds = [cost for cost, _, _ in costs]
    figures: dict[str, Any] = {
        "inputs": len(costs),
        "max_ms": round(milliseconds[0], 1),
        "p99_ms": round(milliseconds[len(costs) // 100], 1),
        "median_ms": round(milliseconds[len(costs) // 2], 2),
        "over_100_ms": sum(cost > 100 for cost in milliseconds),
        "over_1_s": sum(cost > 1000 for cost in milliseconds),
        "raised": [f"{name}: {status}" for _, name, status in costs if status.startswith("raised")],
        "slowest": [(round(cost, 1), name, status) for cost, name, status in costs[:10]],
    }
    print(
        f"\nHostile inputs: {len(costs)} verdicts, max {figures['max_ms']} ms, p99 {figures['p99_ms']} ms, "
        f"median {figures['median_ms']} ms of CPU; {figures['over_100_ms']} over 100 ms, "
        f"{len(figures['raised'])} raised"
    )
    for cost, name, outcome in costs[:10]:
        print(f"  {cost:>9.1f} ms  {name}: {outcome}")
    return figures


def status_or_error(response: str, gold: str) -> str:
    try:
        return grade(response, gold).status
    except Exception as error:  # the one thing it must never do: report it and measure on
        return f"raised {type(error).__name__}"


if __name__ == "__main__":
    main()
