"""What each turn of an episode in the multi-hop world decided, and how credit by turns compares with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch

from foresail.algorithms.evidence import ScoredSample
from foresail.algorithms.turn_credit import pbsd_credit
from foresail.data.made.multi_hop_names import Person, Relation
from foresail.data.made.multi_hop_traces import to_key
from foresail.data.made.multi_hop_world import world_of
from foresail.recipe.tables.credit import Credit
from foresail.records import Group, Problem, Sample
from foresail.rewards.trajectory import read_trajectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.policy import turn_credit
from foresail.train.update.scoring import score_sequences


def contributions(problem: Problem, queries: Sequence[str]) -> list[float]:
    """What each search of an episode decided: 1 it goes by the truth where a lie was told as well; -1 it leads
    astray, by a lie or a name that nobody said; 0 it had no choice, was an aside, or came too late."""
    world, chain = world_of(problem.extra), chain_of(problem)
    relations = {str(relation) for _, relation in chain}  # no aside has one of them
    gains, place = [], 0
    for query in (" ".join(query.split()) for query in queries):
        gains.append(0.0)
        if not 0 <= place < len(chain):
            continue
        lie = world.fact(*chain[place - 1]).lie if place else None
        if query == "{} {}".format(*chain[place]):
            gains[-1], place = float(lie is not None), place + 1
        elif " ".join(query.split()[3:]) in relations:
            gains[-1], place = -1.0, -1
    return gains


def decisions(problem: Problem, responses: Sequence[str]) -> list[float]:
    """As `contributions`, of all turns: the answer chooses between truth and lie as well."""
    gains = contributions(problem, [query_in(text) for text in responses])
    if "<answer>" in responses[-1] and -1.0 not in gains:
        answer = responses[-1].partition("<answer>")[2].partition("</answer>")[0]
        lie = world_of(problem.extra).fact(*chain_of(problem)[-1]).lie
        gains[-1] = float(lie is not None) if answer == problem.answer else -1.0
    return gains


def chain_of(problem: Problem) -> list[tuple[Person, Relation]]:
    both = zip(problem.extra["searches"], problem.extra["matters"], strict=True)
    return [to_key(key) for key, matters in both if matters]


def query_in(response: str) -> str:
    return response.partition("<search>")[2].partition("</search>")[0]


def responses_of(tokenizer: Tokenizer, sample: Sample) -> list[str]:
    return [turn.response for turn in read_trajectory(tokenizer, sample).turns]


# In the place of a teacher.


def score_by_truth(
    groups: Sequence[Group], *_: Any, tokenizer: Tokenizer, **__: Any
) -> list[list[ScoredSample]]:
    """In the place of teacher and student: 4 nats for a turn that chose the truth, -4 for one that chose a lie."""
    return [[score_one(group.problem, tokenizer, sample) for sample in group.samples] for group in groups]


def score_one(problem: Problem, tokenizer: Tokenizer, sample: Sample) -> ScoredSample:
    decided = decisions(problem, responses_of(tokenizer, sample))
    written = Counter(turn for turn, mask in zip(sample.turns, sample.loss_mask, strict=True) if mask)
    gains = [4 * decided[turn] / max(1, written[turn]) for turn in sample.turns]
    return ScoredSample(sample=sample, teachers=[gains], student=[0.0] * len(gains))


# Against the truth.


def correlate(groups: Sequence[Group], settings: Credit, model: Any, tokenizer: Tokenizer) -> dict[str, Any]:
    def score(sequences: Any) -> list[torch.Tensor]:
        return score_sequences(
            model, sequences, temperature=1.0, micro_batch_tokens=16_384, device=model.device
        )

    scored = turn_credit.score_groups(
        groups, settings, tokenizer=tokenizer, max_length=model.shape.max_context, score=score
    )
    by_outcome: dict[str, list[PlantedTurn]] = {"right": [], "wrong": []}
    for group, samples in zip(groups, scored, strict=True):
        if not 0 < group.pass_rate < 1:
            continue  # it teaches nothing
        right = [verdict.status == "correct" for verdict in group.verdicts]
        credits = pbsd_credit(samples, [1.0 if it else -1.0 for it in right], settings, strength=1.0)
        for sample, is_right, credit in zip(group.samples, right, credits, strict=True):
            truth = decisions(group.problem, responses_of(tokenizer, sample))
            by_outcome["right" if is_right else "wrong"] += [
                PlantedTurn(decided, turn.evidence or 0.0, turn.weight, turn.tokens)
                for decided, turn in zip(truth, credit.turns, strict=True)
            ]
    return {
        side: describe_turns(turns, decisive=1.0 if side == "right" else -1.0)
        for side, turns in by_outcome.items()
    }


class PlantedTurn(NamedTuple):
    """A turn of an episode: what it decided, and what PBSD makes of it."""

    decided: float
    evidence: float
    weight: float
    tokens: int


def describe_turns(turns: Sequence[PlantedTurn], decisive: float) -> dict[str, Any]:
    """Rank correlation of evidence with what turns decided; what decisive turns get, where uniform credit is 1;
    evidence of turns that chose truth, decided nothing, led astray.
    """
    by_truth = {truth: [turn for turn in turns if turn.decided == truth] for truth in (1, 0, -1)}
    evidence = {
        truth: [turn.evidence for turn in turns_of_truth] for truth, turns_of_truth in by_truth.items()
    }
    tokens = sum(turn.tokens for turn in by_truth[int(decisive)])
    return {
        "turns": len(turns),
        "evidence": rank([turn.evidence for turn in turns], [turn.decided for turn in turns]),
        "weight": rank([decisive * turn.weight for turn in turns], [turn.decided for turn in turns]),
        "on_decisive": sum(turn.weight * turn.tokens for turn in by_truth[int(decisive)]) / max(1, tokens),
        "mean_evidence": {truth: fmean(values) for truth, values in evidence.items() if values},
        "stdev_evidence": {truth: stdev(values) for truth, values in evidence.items() if len(values) > 1},
    }


def rank(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; ties share their mean rank."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return torch.corrcoef(torch.stack([ranks(first), ranks(second)]))[0, 1].item()


def ranks(values: Sequence[float]) -> torch.Tensor:
    tensor = torch.tensor(values, dtype=torch.float64)
    return (tensor[:, None] > tensor).sum(1) + ((tensor[:, None] == tensor).sum(1) - 1) / 2.0
