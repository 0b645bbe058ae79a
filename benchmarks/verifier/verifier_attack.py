r"""An attack on the maths verifier: wrong answers by the ten thousand, and right ones as a guard.

Three searches. `edits` changes real right answers (a digit, a sign, a bracket, an item, a function, …), one change
or several at random; an oracle of its own, which shares no code with the verifier, keeps those that are surely
wrong. `wrapped` puts wrong answers and planted terms into sentences and into right answers. All other classes
compose cases from numbers and words, so that their truth is known: the problem restated, hedges, huge and tiny
numbers, functions equal nearly everywhere. A verifier that refuses everything would show in `right`.

    python benchmarks/verifier/verifier_attack.py    # 3,000 right answers, some minutes on one core
    python benchmarks/verifier/verifier_attack.py --quick --show 20
    python benchmarks/verifier/verifier_attack.py --classes hedges words --seed 7

It grades with the `foresail` that Python finds first. The last line is JSON; the exit status is 1 where a wrong
answer was accepted, or a verdict failed or took more than a second.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import attack_around
import attack_boxes
import attack_depth
import attack_forms
import attack_names
import attack_relations
import attack_spellings
import attack_values
import attack_words
from attack_case import Case, Maker, boxed
from attack_edits import EDITS, RESPELLINGS, edit
from attack_golds import Gold, read_golds, sample_golds
from attack_oracle import surely_differ
from attack_rewriting import rewritten
from math_pairs import ROOT

from foresail.maths.verdict import FAULT, grade
from foresail.records import FAILURES

MAKERS: dict[str, tuple[Maker, ...]] = (
    attack_relations.MAKERS
    | attack_values.MAKERS
    | attack_words.MAKERS
    | attack_names.MAKERS
    | attack_boxes.MAKERS
    | attack_forms.MAKERS
    | attack_spellings.MAKERS
    | attack_around.MAKERS
    | attack_depth.MAKERS
)
CLASSES = ("edits", "wrapped", "respelled", "rewritten", *MAKERS)
DEEPEST = 4  # edits on top of each other
STATUSES = ("correct", "wrong", "unparsable")  # a response can bring about no other
SLOW = 1.0  # CPU seconds that a verdict must not take
WRAPPERS = (
    "The answer is ${}$.", "So the final answer is $\\boxed{{{}}}$.", "**Answer:** ${}$", "<answer>{}</answer>",
    "Answer: ${}$", "\\[ \\boxed{{{}}} \\]", "<think>It is 7.</think> \\boxed{{{}}}",
    "First I thought \\boxed{{0}}. Wait, that is wrong: \\boxed{{{}}}",
)  # fmt: skip
SETS = ("set or interval", "inequality", "list")  # one or the other of two sets may be all of the larger
HEDGES = (
    "The answer is ${}$ or ${}$.", "\\boxed{{{}}} or \\boxed{{{}}}", "#### ${}$ ${}$", "Answer: ${}$ or ${}$",
    "\\boxed{{{} \\text{{ or }} {}}}",
)  # fmt: skip


class Outcome(NamedTuple):
    """What went wrong with one case."""

    case: Case
    status: str
    seconds: float


def main() -> None:
    options = read_options()
    started = time.process_time()
    rng = random.Random(options.seed)
    golds = sample_golds(read_golds(options.data), options.golds, rng)
    figures: dict[str, Any] = {
        "golds": len(golds),
        "seed": options.seed,
        "wrong": {},
        "right": {},
        "unknown": {},
    }
    figures |= {"crashed": 0, "slow": 0}
    for name in options.classes:
        cases = cases_of(name, golds, options.made, random.Random(f"{options.seed} {name}"))
        report(name, *judge(cases), figures, options.show)
    for side in ("wrong", "right"):
        figures[f"{side} tried"] = sum(entry["tried"] for entry in figures[side].values())
    figures["accepted wrong"] = sum(entry["accepted"] for entry in figures["wrong"].values())
    figures["rejected right"] = sum(entry["rejected"] for entry in figures["right"].values())
    figures["CPU seconds"] = round(time.process_time() - started, 1)
    print(json.dumps(figures, ensure_ascii=False))
    sys.exit(1 if figures["accepted wrong"] or figures["crashed"] or figures["slow"] else 0)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared/data", help="the shared data folder"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--golds", type=int, default=3000, help="right answers to change")
    parser.add_argument("--made", type=int, default=3000, help="cases of each maker, repeated ones dropped")
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=CLASSES)
    parser.add_argument("--show", type=int, default=4, help="examples of each family in the report")
    parser.add_argument("--quick", action="store_true", help="200 right answers, 100 cases of each maker")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"no data at {options.data}; name the folder with --data")
    if options.quick:
        options.golds, options.made = 200, 100
    return options


def cases_of(name: str, golds: list[Gold], made: int, rng: random.Random) -> Iterator[Case]:
    """The cases of a class, each once."""
    searches = {"edits": edited, "wrapped": wrapped, "respelled": respelled, "rewritten": rewritten}
    cases = searches[name](golds, rng) if name in searches else composed(MAKERS[name], made, rng)
    seen: set[Case] = set()
    for case in cases:
        if case not in seen:
            seen.add(case)
            yield case


def composed(makers: tuple[Maker, ...], count: int, rng: random.Random) -> Iterator[Case]:
    for maker in makers:
        for _ in range(count):
            yield maker(rng)


def edited(golds: list[Gold], rng: random.Random) -> Iterator[Case]:
    """Every single edit of every right answer, and as many chains of two to four."""
    for gold in golds:
        for name in EDITS:
            changed = edit(name, gold.text, rng)
            if changed is not None and surely_differ(changed, gold.text):
                yield Case(f"edit: {name}", boxed(changed), gold.text)
        for _ in range(len(EDITS) // 3):
            changed = chain_of_edits(gold.text, rng)
            if changed is not None and surely_differ(changed, gold.text):
                yield Case("edits in a chain", boxed(changed), gold.text)


def chain_of_edits(text: str, rng: random.Random) -> str | None:
    changed: str | None = text
    for _ in range(rng.randrange(2, DEEPEST + 1)):
        changed = edit(rng.choice(tuple(EDITS)), changed, rng) or changed if changed else None
    return changed


def wrapped(golds: list[Gold], rng: random.Random) -> Iterator[Case]:
    """Another answer in a sentence, a right and a wrong one side by side, something planted into a right one."""
    for gold in golds:
        other = edit(rng.choice(tuple(EDITS)), gold.text, rng)
        if other is not None and surely_differ(other, gold.text):
            yield Case("wrong in a sentence", rng.choice(WRAPPERS).format(other), gold.text)
            if gold.kind not in SETS:
                pair = rng.sample((gold.text, other), 2)
                yield Case("right or wrong", rng.choice(HEDGES).format(*pair), gold.text)
            yield Case(
                "right taken back",
                rf"\boxed{{{gold.text}}}. Wait, that is wrong. It is ${other}$.",
                gold.text,
            )
        if can_hold_more(gold):
            yield Case(
                "planted in a right answer", boxed(f"{gold.text}+{attack_values.bump(rng)}"), gold.text
            )
        if gold.kind in ("integer", "fraction", "decimal", "radical or constant"):
            word = attack_words.changing_word(rng)
            if "%" not in gold.text and word not in ("e", "i"):
                yield Case("word behind a right answer", boxed(rf"{gold.text}\text{{ {word}}}"), gold.text)
            if surely_differ(gold.text, "0"):
                yield Case("sign before a right answer", f"The answer is minus ${gold.text}$.", gold.text)


def can_hold_more(gold: Gold) -> bool:
    """Polynomials in x: they have a value wherever a planted term shows."""
    fine = set("x0123456789+-*^{}() ")
    return gold.kind == "with variables" and "x" in gold.text and set(gold.text) <= fine


def respelled(golds: list[Gold], rng: random.Random) -> Iterator[Case]:
    for gold in golds:
        name = rng.choice(tuple(RESPELLINGS))
        changed = RESPELLINGS[name](gold.text, rng)
        if changed:
            yield Case(f"respelled: {name}", boxed(changed), gold.text, right=True)


def judge(cases: Iterator[Case]) -> tuple[dict[str, tuple[bool | None, int]], list[Outcome], list[Outcome]]:
    """How many of each family there were, the misjudged ones, and those that took too long or raised."""
    tried: dict[str, tuple[bool | None, int]] = {}
    misjudged, troubles = [], []
    for case in cases:
        tried[case.family] = (case.right, tried.get(case.family, (case.right, 0))[1] + 1)
        started = time.process_time()
        status = status_of(case.response, case.gold)
        outcome = Outcome(case, status, time.process_time() - started)
        if case.right is not None and (status == "correct") != case.right:
            misjudged.append(outcome)
        if case.right is None and fails_alone(status, case.gold):
            continue
        if outcome.seconds > SLOW or status not in STATUSES:
            troubles.append(outcome)
    return tried, misjudged, troubles


def fails_alone(status: str, gold: str) -> bool:
    """Whether a failure is the right answer's, which was made as deep as the response: a plain one fails, too."""
    return status == "ungradable" or (status in FAILURES and status_of(boxed("7"), gold) in FAILURES)


def status_of(response: str, gold: str) -> str:
    """The verdict's status, or what went wrong instead: that is reported, and not the end of the search."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = grade(response, gold)
    except Exception as error:
        return f"raised {type(error).__name__}"
    return FAULT if FAULT in verdict.detail else str(verdict.status)


def report(
    name: str,
    tried: dict[str, tuple[bool | None, int]],
    misjudged: list[Outcome],
    troubles: list[Outcome],
    figures: dict[str, Any],
    show: int,
) -> None:
    """Adds a class to the figures and prints its first examples."""
    for family, (is_right, count) in sorted(tried.items()):
        bad = [outcome.case for outcome in misjudged if outcome.case.family == family]
        verb = "rejected" if is_right else "accepted"
        entry: dict[str, Any] = {"tried": count, verb: len(bad)}
        if bad:
            entry["examples"] = [[case.response, case.gold] for case in bad[:show]]
        side = "unknown" if is_right is None else "right" if is_right else "wrong"
        figures[side][f"{name}: {family}"] = entry
        print(f"{name:18} {family:32} {count:6} tried {len(bad):6} {verb}", flush=True)
        for case in bad[:show]:
            print(f"    {case.response!r}  for  {case.gold!r}")
    figures["slow"] += sum(outcome.seconds > SLOW for outcome in troubles)
    figures["crashed"] += sum(outcome.status not in STATUSES for outcome in troubles)
    if troubles:
        figures.setdefault("troubles", []).extend(
            [outcome.status, round(outcome.seconds, 2), outcome.case.response[:200], outcome.case.gold[:200]]
            for outcome in troubles[:show]
        )
        print(f"{name:18} {len(troubles)} verdicts took over {SLOW:g} s or gave no verdict")


if __name__ == "__main__":
    main()
