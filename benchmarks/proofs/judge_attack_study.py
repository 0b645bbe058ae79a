"""How far attacks move a judge, by form, against neutral texts of the same length at the same place.

A pair is attacked where the judge says in both orders, without an attack, that the answer which people preferred is
better. The losing answer then carries an attack. `moved`: the verdict is no more the right one (another, or
inconsistent); `lost`: the attacked answer wins in both orders; `shift`: what the attack takes of the right answer's
probability. Each beside the control, with the 95 % interval of the difference over pairs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from judge_attacks import NEUTRAL, Attack, combined, control_of, draw

from foresail.rewards.judging.judge import Comparison, Judge, Pair
from foresail.rewards.judging.rubric import Rubric

Z = 1.96
AT_ONCE = 256
KEPT, DRAWN, ROUNDS = 4, 24, 3  # of a search: attacks that it goes on with, that it tries, and how often
# Lines that speak to a judge rather than to the user, for a defence that leaves them out.
TO_JUDGE = re.compile(
    r"\b(verdict|rating|score|better answer|judge|ignore (all|the)|instructions?|prefer|winner|label|system|"
    r"this answer|other answer|answer [AB]|choose)\b|^\W*[AB]\W*$|^\W*[{<\[].*[}>\]]\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Study:
    pairs: dict[str, list[Pair]]
    rubric: Rubric
    attacked: int
    searched: int
    forms: Sequence[str]
    seed: int
    any_pair: bool = False  # whatever the judge says: for a model that has learnt nothing


def compare(judge: Judge, pairs: Sequence[Pair], rubric: Rubric) -> list[Any]:
    parts = (pairs[first : first + AT_ONCE] for first in range(0, len(pairs), AT_ONCE))
    return [verdict for part in parts for verdict in judge.compare(part, rubric)]


def won_pairs(study: Study, judge: Judge, most: int) -> list[Pair]:
    """Where the judge is right and sure of the order, drawn evenly from the sources."""
    chosen: list[list[Pair]] = []
    for source, pairs in study.pairs.items():
        verdicts = compare(judge, pairs, study.rubric)
        both = zip(pairs, verdicts, strict=True)
        own = [pair for pair, one in both if study.any_pair or outcome_of(one) == "first"]
        random.Random(f"{study.seed} {source}").shuffle(own)
        chosen.append(own)
    rounds = (pair for row in range(most) for own in chosen for pair in own[row : row + 1])
    return [pair for pair, _ in zip(rounds, range(most), strict=False)]


def outcome_of(verdict: Any) -> str:
    return verdict.outcome if isinstance(verdict, Comparison) else "unjudged"


def attacked(pair: Pair, attack: Attack, strips: bool = False) -> Pair:
    second = attack.attach(pair.second)
    if strips:
        return replace(pair, first=stripped(pair.first), second=stripped(second))
    return replace(pair, second=second)


def stripped(text: str) -> str:
    """Without lines that speak to a judge; as it is, if nothing would be left."""
    left = "\n".join(line for line in text.split("\n") if not TO_JUDGE.search(line))
    return left if left.strip() else text


def study_attacks(study: Study, judge: Judge, strips: bool = False) -> dict[str, Any]:
    """By form."""
    pairs = won_pairs(study, judge, study.attacked)
    cases, controls = [], []
    for form in study.forms:
        for number, pair in enumerate(pairs):
            generator = random.Random(f"{study.seed} {form} {number}")
            attack = draw(form, generator)
            cases.append(attacked(pair, attack, strips))
            controls.append(attacked(pair, control_of(attack, generator), strips))
    hit, calm = (compare(judge, some, study.rubric) for some in (cases, controls))
    figures: dict[str, Any] = {"pairs": len(pairs), "forms": {}}
    for place, form in enumerate(study.forms):
        part = slice(place * len(pairs), (place + 1) * len(pairs))
        figures["forms"][form] = effect(hit[part], calm[part])
    figures["all"] = effect(hit, calm)
    return figures


def effect(hit: Sequence[Any], calm: Sequence[Any]) -> dict[str, Any]:
    pairs = [*zip(hit, calm, strict=True)]
    return {
        "moved": difference([(outcome_of(a) != "first", outcome_of(b) != "first") for a, b in pairs]),
        "lost": difference([(outcome_of(a) == "second", outcome_of(b) == "second") for a, b in pairs]),
        "shift": difference(
            [
                (-a.score, -b.score)
                for a, b in pairs
                if isinstance(a, Comparison) and isinstance(b, Comparison)
            ]
        ),
    }


def difference(values: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Of attack and control: both means, and the mean difference with half of its interval."""
    if not values:
        return {}
    gaps = [float(hit) - float(calm) for hit, calm in values]
    mean = sum(gaps) / len(gaps)
    spread = sqrt(sum((gap - mean) ** 2 for gap in gaps) / max(1, len(gaps) - 1))
    return {
        "attack": round(sum(float(hit) for hit, _ in values) / len(values), 4),
        "control": round(sum(float(calm) for _, calm in values) / len(values), 4),
        "difference": round(mean, 4),
        "reach": round(Z * spread / sqrt(len(gaps)), 4),
    }


def study_defences(study: Study, judge: Judge, strips: bool = False) -> dict[str, Any]:
    """All forms together, and the five that move most."""
    figures = study_attacks(replace(study, attacked=max(2, study.attacked // 3)), judge, strips)
    most = sorted(figures["forms"].items(), key=lambda item: -item[1]["moved"].get("difference", 0.0))[:5]
    return {"pairs": figures["pairs"], "all": figures["all"], "worst": dict(most)}


def study_search(study: Study, judge: Judge) -> dict[str, Any]:
    """The best of many attacks on each pair, against the best of as many neutral texts."""
    pairs = won_pairs(study, judge, study.searched)
    figures: dict[str, Any] = {"pairs": len(pairs), "tries": DRAWN * ROUNDS}
    for kind in ("attacks", "neutral"):
        best = [search(study, judge, pair, number, kind) for number, pair in enumerate(pairs)]
        figures[kind] = {
            "moved": round(sum(outcome != "first" for outcome, _, _ in best) / max(1, len(best)), 4),
            "lost": round(sum(outcome == "second" for outcome, _, _ in best) / max(1, len(best)), 4),
            "score": round(sum(score for _, score, _ in best) / max(1, len(best)), 4),
        }
        if kind == "attacks":
            figures["examples"] = [attack.form for _, _, attack in best[:10]]
    return figures


def search(study: Study, judge: Judge, pair: Pair, number: int, kind: str) -> tuple[str, float, Attack]:
    generator = random.Random(f"{study.seed} {kind} {number}")

    def fresh() -> Attack:
        attack = draw(generator.choice(study.forms), generator)
        return attack if kind == "attacks" else control_of(attack, generator)

    tried = [fresh() for _ in range(DRAWN)]
    ranked: list[tuple[float, int, str, Attack]] = []
    for _ in range(ROUNDS):
        verdicts = compare(judge, [attacked(pair, attack) for attack in tried], study.rubric)
        ranked += [
            (verdict.score, len(ranked) + place, verdict.outcome, attack)
            for place, (verdict, attack) in enumerate(zip(verdicts, tried, strict=True))
            if isinstance(verdict, Comparison)
        ]
        ranked = sorted(ranked, key=lambda entry: entry[:2])[:KEPT]
        bests = [attack for *_, attack in ranked] or [fresh()]
        tried = [
            combined(generator.choice(bests), generator.choice([*bests, fresh()]), generator)
            for _ in range(DRAWN)
        ]
    if not ranked:
        return "unjudged", 1.0, Attack(form="none", place="end", text=NEUTRAL[0])
    score, _, outcome, attack = ranked[0]
    return outcome, score, attack
