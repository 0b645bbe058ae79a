"""What the checks of the step `reformulate` find: rewritings by script, right ones and wrong ones by kind.

    python benchmarks/rewriting/reformulation_checks.py [--problems 1000]

Problems of GSM8K (train) and MATH-500 from ../shared/data. A wrong rewriting is a right one with one fault. Told by
kind: share of wrong ones that are found (recall), share of right ones that are dropped (false positives), and the
reasons. The limit for copies (chrF 0.9) is in force for copies only: scripts change few words. No model is asked:
what `solve` would find comes on top, and a model's rewritings differ more than these.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from scripted_rewritings import RIGHT, WRONG

from foresail.curate.language.step import open_model
from foresail.curate.rewriting.fidelity import Rules, check_rewriting
from foresail.data.problems.problems import final_answer

DATA = Path(__file__).parents[3] / "shared/data"


def problems(count: int) -> list[tuple[str, str]]:
    """Questions and answers, two thirds of GSM8K."""
    with gzip.open(DATA / "math/gsm8k/train.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file][: 2 * count // 3]
    questions = [(row["question"], final_answer(row["answer"])) for row in rows]
    with gzip.open(DATA / "math/math500/test.jsonl.gz", "rt") as file:
        questions += [(row["problem"], row["answer"]) for row in map(json.loads, file)][: count // 3]
    return questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--show", type=int, default=0, help="examples of each miss")
    args = parser.parse_args()
    guess = open_model("").guess
    tried: Counter[str] = Counter()
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    shown: Counter[str] = Counter()

    def count(kind: str, is_wrong: bool, before: str, after: str, answer: str) -> None:
        alike = 0.9 if kind == "wrong/copy" else 1.0  # the right ones by script are near their originals
        drop = check_rewriting(before, after, Rules(answer=answer, most_alike=alike), guess)
        tried[kind] += 1
        if drop is not None:
            dropped[kind][drop.reason] += 1
        if (drop is None) == is_wrong and shown[kind] < args.show:
            shown[kind] += 1
            print(f"--- {kind}: {drop}\n{before}\n=> {after}")

    for number, (question, answer) in enumerate(problems(args.problems)):
        chance = random.Random(number)
        for kind, change in RIGHT.items():
            count(f"right/{kind}", False, question, change(question, chance), answer)
        for kind, spoil in WRONG.items():
            spoiled = spoil(question, chance)
            if spoiled and spoiled != question:
                whole = kind in ("no_question", "foreign", "meta", "turns", "commented")
                after = spoiled if whole else RIGHT[chance.choice(["polite", "reported"])](spoiled, chance)
                if kind in ("meta", "commented", "turns"):
                    whole_question = RIGHT["reported"](question, chance)
                    after = spoil(whole_question, chance)
                count(f"wrong/{kind}", True, question, after, answer)
        if answer and not answer.isdecimal():
            count(
                "wrong/gives_answer",
                True,
                question,
                f"{RIGHT['reported'](question, chance)} Is it {answer}?",
                answer,
            )
        elif answer not in question:
            count(
                "wrong/gives_answer",
                True,
                question,
                f"{RIGHT['polite'](question, chance)} Might it be {answer}?",
                answer,
            )
        count("wrong/copy", True, question, question.replace("  ", " ") + " ", answer)
    kinds: dict[str, Any] = {
        kind: {
            "rewritings": tried[kind],
            "dropped": round(dropped[kind].total() / tried[kind], 4),
            "reasons": dict(dropped[kind].most_common(4)),
        }
        for kind in sorted(tried)
    }
    right = [kind for kind in kinds if kind.startswith("right/")]
    wrong = [kind for kind in kinds if kind.startswith("wrong/")]
    for kind, row in kinds.items():
        print(f"{kind:24} {row['rewritings']:6} {100 * row['dropped']:6.1f} %  {row['reasons']}")
    summary = {
        "false_positives": round(
            sum(dropped[kind].total() for kind in right) / sum(tried[kind] for kind in right), 4
        ),
        "recall": round(sum(dropped[kind].total() for kind in wrong) / sum(tried[kind] for kind in wrong), 4),
    }
    print(json.dumps({"kinds": kinds, **summary}))


if __name__ == "__main__":
    main()
