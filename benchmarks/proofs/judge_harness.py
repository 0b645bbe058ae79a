"""What holds whatever model judges: forged verdicts against judges that repeat or obey what they read.

    python benchmarks/proofs/judge_harness.py --attacks 20000        # a minute of a CPU

Attacks are those of `judge_attacks.py`: each form in many variants, and two or three of any forms combined. Two
judges stand in for the weakest models. The parrot answers with a piece of the attacked answer: all of it, its
lines, its objects in braces, or these behind thinking or in a fence. It gives a verdict if any piece is read as
one. The servant does what the attack says: it calls the letter better that stands last in the attacked answer,
in a perfectly sealed object; where there is no letter it sees through the attack. Frames are checked too: a
mark stands in a question twice for each quoted text, and no control token is there. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from judge_attacks import FORMS, Attack, combined, draw

from foresail.recipe.tables.judge import JudgeForm
from foresail.records import Message
from foresail.rewards.judging.judge import AS_SCORE, Said, settle
from foresail.rewards.judging.question import PairQuestion, pair_question
from foresail.rewards.judging.quoting import Frame
from foresail.rewards.judging.reading import Unreadable
from foresail.rewards.judging.rubric import load_rubric

PROMPT = (Message(role="user", content="Where is the Eiffel Tower?"),)
GOOD, BAD = "The Eiffel Tower is in Paris, France.", "The Eiffel Tower is in Rome."
CONTROL = (
    *(
        "<|",
        "|>",
        "<｜",
        "｜>",
        "</s>",
        "[INST]",
        "[/INST]",
        "<think>",
        "</think>",
        "<start_of_turn>",
        "<tool_call>",
    ),
)
LETTER = re.compile(r"(?<![A-Za-z])[AB](?![A-Za-z])")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attacks", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    attacks = [*draw_attacks(options.attacks, random.Random(options.seed))]
    figures: dict[str, Any] = {"attacks": len(attacks), "forms": len(FORMS)}
    for quote in ("frame", "json"):
        for seal in (True, False):
            form = JudgeForm(seal=seal, quote=quote)
            figures[f"{quote}, {'sealed' if seal else 'not sealed'}"] = measure(attacks, form)
    print(json.dumps(figures))


def draw_attacks(count: int, rng: random.Random) -> Iterator[Attack]:
    """Half of single forms in turn, half combined."""
    names = [*FORMS]
    for number in range(count):
        attack = draw(names[number // 2 % len(names)], rng)
        for _ in range(rng.randint(1, 2) if number % 2 else 0):
            attack = combined(attack, draw(rng.choice(names), rng), rng)
        yield attack


def measure(attacks: list[Attack], form: JudgeForm) -> dict[str, Any]:
    rubric = load_rubric("quality")
    counts: Counter[str] = Counter()
    repeated: set[str] = set()
    served: Counter[str] = Counter()
    for attack in attacks:
        bad = attack.attach(BAD)
        orders = [
            pair_question(PROMPT, first, second, rubric, form) for first, second in ((GOOD, bad), (bad, GOOD))
        ]
        mark = Frame.of([PROMPT[0].content, GOOD, bad], form.quote).mark
        asked = orders[0].messages[-1].content
        counts["frame broken"] += asked.count(mark) != 6
        counts["control token"] += any(token in asked for token in CONTROL)
        if any(verdict_of(orders[0], piece) for piece in pieces(bad)):
            counts["parrot gives a verdict"] += 1
            repeated.update([attack.form] if attack.form in FORMS else [])
        verdict = settle(serve(orders[0], bad, "B"), serve(orders[1], bad, "A"))
        served[getattr(verdict, "outcome", "unjudged")] += 1
    scores = {name: AS_SCORE[name] for name in ("first", "inconsistent", "second")}
    return {
        **{name: counts[name] for name in ("frame broken", "control token", "parrot gives a verdict")},
        "forms that the parrot repeats": sorted(repeated),
        "servant": dict(served),
        "score of each outcome": scores,
    }


def pieces(answer: str) -> Iterator[str]:
    pieces = [answer, *answer.split("\n"), *answer.split("\n\n"), *re.findall(r"\{[^{}]*\}", answer)]
    for piece in {own.strip() for own in pieces if own.strip()}:
        yield piece
        yield f"<think>hm</think>{piece}"
        yield f"```json\n{piece}\n```"


def verdict_of(question: PairQuestion, answer: str) -> str | None:
    try:
        return question.read(answer)
    except Unreadable:
        return None


def serve(question: PairQuestion, attacked: str, place: str) -> Said:
    """What it says of answer A. `place`: where the attacked answer stands, which its author cannot know."""
    letters = LETTER.findall(attacked)
    better = letters[-1] if letters else ("B" if place == "A" else "A")
    return float(question.read(json.dumps({question.name: better})) == "A")


if __name__ == "__main__":
    main()
