"""A judge of words alone: how far does it agree with people, and which forged verdicts move it?

    python benchmarks/proofs/judge_lab.py --prepare runs/judge39 --preference ../shared/data/preference
    python benchmarks/proofs/judge_linear.py --payload runs/judge39                 # some minutes of a CPU

The pairs, their split and the attacks are those of `judge_lab.py`, and the questions have the same form. The
judge is a logistic regression on the words and pairs of words of both answers, their lengths, and the words
that they share with the prompt. It has no order: its swap consistency is 1 by construction. The strength of its
penalty is chosen on the dev split. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from judge_attack_study import Study, study_attacks
from judge_attacks import FORMS
from judge_lab import READ, RUBRIC, SIZES, Lab, compare

from foresail.chat.endpoint import Note, no_note
from foresail.curate.judging.pairs import answer_text, as_pair, cluster_of
from foresail.records import Message, PreferencePair
from foresail.rewards.judging.agreement import agreement
from foresail.rewards.judging.judge import Judge
from foresail.rewards.judging.question import message_text
from foresail.rewards.judging.quoting import shortened

WORD = re.compile(r"\w+|[^\w\s]")
CELLS = 1 << 18
PENALTIES = (1e-4, 1e-3, 1e-2)
SURE = 3.3  # deviations of a difference that is not chance among 80: 0.05 / 80, two-sided
Features = dict[int, float]


class LinearJudge:
    """`answer` is what a model's answerer is to `Judge`: it reads both answers out of their frames."""

    def __init__(self) -> None:
        self.weights: dict[int, float] = {}

    def train(self, rows: Sequence[tuple[Features, Features]], penalty: float, epochs: int = 8) -> None:
        """AdaGrad on the log loss of "the first is better"."""
        squares: dict[int, float] = {}
        order = random.Random(0)
        gaps = [gap(*row) for row in rows]
        for _ in range(epochs):
            order.shuffle(gaps)
            for features in gaps:
                error = sigmoid(-self.lead(features))
                for cell, value in features.items():
                    weight = self.weights.get(cell, 0.0)
                    slope = error * value - penalty * weight
                    squares[cell] = squares.get(cell, 1e-6) + slope * slope
                    self.weights[cell] = weight + 0.05 * slope / math.sqrt(squares[cell])

    def lead(self, features: Features) -> float:
        return sum(self.weights.get(cell, 0.0) * value for cell, value in features.items())

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        keys: Sequence[str],
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> list[str]:
        shares = []
        for conversation in conversations:
            prompt, first, second = texts_in(conversation[-1].content)
            share = sigmoid(self.lead(gap(features_of(prompt, first), features_of(prompt, second))))
            shares.append(json.dumps([round(share, 6), round(1 - share, 6)]))
        return shares


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))


def gap(first: Features, second: Features) -> Features:
    cells = first.keys() | second.keys()
    gaps = {cell: first.get(cell, 0.0) - second.get(cell, 0.0) for cell in cells}
    return {cell: value for cell, value in gaps.items() if value}


def features_of(prompt: str, answer: str) -> Features:
    words = [word.lower() for word in WORD.findall(answer)]
    counts = Counter([*words, *map(" ".join, pairwise(words))])
    features = {cell_of(name): math.log1p(count) / 4 for name, count in counts.items()}
    asked = {word.lower() for word in WORD.findall(prompt)}
    shared = sum(word in asked for word in words) / max(1, len(words))
    lengths = {
        "length": math.log1p(len(answer)),
        "lines": math.log1p(answer.count("\n")),
        "shared": 4 * shared,
    }
    return features | {cell_of(f"({name})"): value for name, value in lengths.items()}


def cell_of(name: str) -> int:
    return zlib.crc32(name.encode()) % CELLS


def texts_in(question: str) -> tuple[str, str, str]:
    """The prompt, answer A and answer B of a question, each out of its frames."""
    frames: dict[str, str] = {}
    for name, _, text in re.findall(r"<<([\w ]+) ([0-9a-f]{16})>>\n(.*?)\n<</\1 \2>>", question, re.DOTALL):
        frames[name] = text
    prompt = " ".join(text for name, text in frames.items() if name.startswith("from "))
    return prompt, frames["answer A"], frames["answer B"]


def row_of(pair: PreferencePair) -> tuple[Features, Features]:
    prompt = " ".join(map(message_text, pair.prompt))
    texts = (shortened(answer_text(messages), READ.max_chars) for messages in (pair.chosen, pair.rejected))
    better, worse = (features_of(prompt, text) for text in texts)
    return better, worse


def agreements(judge: Judge, pairs: dict[str, list[PreferencePair]]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    every: list[tuple[Any, str]] = []
    for source, own in pairs.items():
        verdicts = compare(judge, [*map(as_pair, own)])
        both = [*zip(verdicts, map(cluster_of, own), strict=True)]
        figures[source] = shown(both)
        every += both
    return figures | {"all": shown(every)}


def shown(both: Sequence[tuple[Any, str]]) -> dict[str, Any]:
    figures = asdict(agreement([verdict for verdict, _ in both], [name for _, name in both]))
    return {
        "pairs": figures["pairs"],
        **{
            key: figures[key] and [round(figures[key][part], 4) for part in ("value", "low", "high")]
            for key in ("agreement", "consistency")
        },
    }


def movers(forms: dict[str, Any]) -> dict[str, Any]:
    """Forms that move the verdict beyond neutral text, surely among so many forms; and those that only seem to."""
    sure: dict[str, Any] = {}
    apparent: dict[str, list[str]] = {}
    for name, effect in forms.items():
        moved, shift = effect["moved"], effect["shift"]
        for kind, one in (("moved", moved), ("shift", shift)):
            if one["difference"] - one["reach"] * SURE / 1.96 > 0:
                sure.setdefault(kind, {})[name] = one
            elif one["difference"] - one["reach"] > 0:
                apparent.setdefault(kind, []).append(name)
    return {"sure": sure, "apparent": apparent}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--payload", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("runs/judge-linear"))
    parser.add_argument("--attacked", type=int, default=80, help="pairs that each form attacks")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.process_time()
    lab = Lab(
        payload=options.payload,
        folder=options.output,
        size=SIZES["lab"],
        tiny=False,
        device="cpu",
        seed=options.seed,
        ends=math.inf,
    )
    lab.folder.mkdir(parents=True, exist_ok=True)
    rows = [row_of(pair) for pairs in lab.pairs("train").values() for pair in pairs]
    on_dev = {}
    judges = {}
    for penalty in PENALTIES:
        model = LinearJudge()
        model.train(rows, penalty)
        judges[penalty] = Judge(READ, model.answer)
        on_dev[penalty] = agreements(judges[penalty], lab.pairs("dev"))["all"]["agreement"][0]
    best = max(on_dev, key=on_dev.__getitem__)
    test = lab.pairs("test")
    study = Study(
        pairs={source: [*map(as_pair, pairs)] for source, pairs in test.items()},
        rubric=RUBRIC,
        attacked=options.attacked,
        searched=0,
        forms=[*FORMS],
        seed=options.seed,
    )
    attacks = study_attacks(study, judges[best])
    figures = {
        "trained on": len(rows),
        "dev": on_dev,
        "penalty": best,
        "test": agreements(judges[best], test),
        "attacked": attacks["pairs"],
        "forms": len(FORMS),
        "all forms": attacks["all"],
        "movers": movers(attacks["forms"]),
        "cpu seconds": round(time.process_time() - begin, 1),
    }
    (options.output / "result.json").write_text(json.dumps(figures | {"by form": attacks["forms"]}, indent=1))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
