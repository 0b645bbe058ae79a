"""Preference pairs from a step's own samples, and metrics of the groups that give none.

pairs = [pair for group in groups for pair in pairs_of(group, settings)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foresail.algorithms.pairing import ScoredAnswer, pair_answers
from foresail.recipe.tables.pairing import Pairing
from foresail.records import Group, Sample, TrainPair, TrainSequence


def pairs_of(group: Group, settings: Pairing) -> list[TrainPair]:
    """None where a verdict failed: a failure is never a score."""
    return [
        TrainPair(
            name=f"{group.problem.id} samples {chosen} and {rejected}",
            chosen=to_sequence(group.samples[chosen], f"{group.problem.id} sample {chosen}"),
            rejected=to_sequence(group.samples[rejected], f"{group.problem.id} sample {rejected}"),
        )
        for chosen, rejected in ([] if group.failed else places_of(group, settings))
    ]


def places_of(group: Group, settings: Pairing) -> list[tuple[int, int]]:
    return pair_answers(answers_of(group, settings.missing_eos_penalty), settings.kind, settings.most)


def answers_of(group: Group, missing_eos_penalty: float) -> list[ScoredAnswer]:
    """Rewards, less the penalty for truncated answers; right or wrong where a grader decided it."""
    return [
        ScoredAnswer(
            reward=(reward or 0.0) - (missing_eos_penalty if sample.finish == "length" else 0.0),
            right=None if verdict.status == "scored" else verdict.status == "correct",
            tokens=sample.ids,
        )
        for sample, verdict, reward in zip(group.samples, group.verdicts, group.rewards, strict=True)
    ]


def to_sequence(sample: Sample, name: str) -> TrainSequence:
    return TrainSequence(name=name, ids=sample.ids, loss_mask=sample.loss_mask)


def pair_metrics(launched: Sequence[Group], settings: Pairing) -> dict[str, float]:
    """How many groups gave no pair, by the reason, and how far the rewards of pairs are apart."""
    reasons: Counter[str] = Counter()
    margins, num_tokens = [], Counter[str]()
    for group in launched:
        places = [] if group.failed else places_of(group, settings)
        if not places:
            reasons[why_none(group)] += 1
        answers = answers_of(group, settings.missing_eos_penalty)
        for chosen, rejected in places:
            margins.append(answers[chosen].reward - answers[rejected].reward)
            num_tokens["chosen"] += group.samples[chosen].num_response_tokens
            num_tokens["rejected"] += group.samples[rejected].num_response_tokens
    metrics: dict[str, float] = {
        f"pairs/groups_{why}": reasons[why] for why in ("all_right", "all_wrong", "alike", "failed")
    }
    if margins:
        metrics["pairs/reward_margin"] = sum(margins) / len(margins)
        metrics |= {f"response_length/{side}/mean": num_tokens[side] / len(margins) for side in num_tokens}
    return metrics


def why_none(group: Group) -> str:
    if group.failed:
        return "failed"
    if group.pass_rate == 1:
        return "all_right"
    judged = all(verdict.status != "scored" for verdict in group.verdicts)
    return "all_wrong" if judged and group.pass_rate == 0 else "alike"
