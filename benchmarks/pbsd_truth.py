"""What each turn of an episode in the multi-hop world decided, and how credit by turns compares with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import torch

from foresail.algorithms.evidence import ScoredSample
from foresail.algorithms.turn_credit import pbsd_credit
from foresail.data.multi_hop_traces import to_key
from foresail.data.multi_hop_world import world_of
from foresail.recipe.credit import Credit
from foresail.records import Group, Problem, Sample
from foresail.rewards.trajectory import read_trajectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train import turn_credit
from foresail.train.scoring import score_sequences


def contributions(problem: Problem, queries: Sequence[str]) -> list[float]:
    """What each search of an episode decided: 1 it goes by the truth where a lie was told as well, -1 it goes by
    the lie, 0 it had no choice, was an aside, or the episode had gone astray before."""
    world = world_of(problem.extra)
    both = zip(problem.extra["searches"], problem.extra["matters"], strict=True)
    chain = [to_key(key) for key, matters in both if matters]
    found, place = [], 0
    for query in (" ".join(query.split()) for query in queries):
        found.append(0.0)
        if not 0 <= place < len(chain):
            continue
        lie = world.fact(*chain[place - 1]).lie if place else None
        if query == "{} {}".format(*chain[place]):
            found[-1], place = float(lie is not None), place + 1
        elif lie is not None and query.startswith(str(lie)):
            found[-1], place = -1.0, -1
    return found


def decisions(problem: Problem, responses: Sequence[str]) -> list[float]:
    """As `contributions`, of all turns: the answer chooses between truth and lie as well."""
    *searches, last = responses
    found = contributions(problem, [query_in(text) for text in searches])
    both = zip(problem.extra["searches"], problem.extra["matters"], strict=True)
    end = to_key([key for key, matters in both if matters][-1])
    arrived = any(query_in(text) == "{} {}".format(*end) for text in searches)
    lie = world_of(problem.extra).fact(*end).lie
    answer = last.partition("<answer>")[2].partition("</answer>")[0]
    chose = {problem.answer: 1.0, str(lie): -1.0}.get(answer, 0.0)
    return [*found, chose if arrived and lie is not None else 0.0]


def query_in(response: str) -> str:
    return response.partition("<search>")[2].partition("</search>")[0]


def queries_of(tokenizer: Tokenizer, sample: Sample) -> list[str]:
    turns = [turn.response for turn in read_trajectory(tokenizer, sample).turns]
    return [query_in(text) for text in turns if "<search>" in text]


# In the place of a teacher.


def score_by_truth(
    groups: Sequence[Group], *_: Any, tokenizer: Tokenizer, **__: Any
) -> list[list[ScoredSample]]:
    """In the place of teacher and student: 4 nats for a turn that chose the truth, -4 for one that chose a lie."""
    return [[score_one(group.problem, tokenizer, sample) for sample in group.samples] for group in groups]


def score_one(problem: Problem, tokenizer: Tokenizer, sample: Sample) -> ScoredSample:
    decided = decisions(problem, [turn.response for turn in read_trajectory(tokenizer, sample).turns])
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
    found: dict[str, list[tuple[float, float, float]]] = {"right": [], "wrong": []}
    for group, samples in zip(groups, scored, strict=True):
        right = [verdict.status == "correct" for verdict in group.verdicts]
        credits = pbsd_credit(samples, [1.0 if it else -1.0 for it in right], settings, strength=1.0)
        for sample, is_right, credit in zip(group.samples, right, credits, strict=True):
            truth = contributions(group.problem, queries_of(tokenizer, sample))
            side = found["right" if is_right else "wrong"]
            for brought, turn in zip(truth, credit.turns, strict=False):  # the answer's turn is left out
                if turn.evidence is not None:
                    side.append((brought, turn.evidence, turn.weight if is_right else -turn.weight))
    return {side: describe_turns(turns) for side, turns in found.items()}


def describe_turns(turns: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    """Rank correlations; mean evidence of turns that chose truth, had no choice, chose a lie; how clear it is."""
    truths, evidence, weights = zip(*turns, strict=True) if turns else ((), (), ())
    by_truth = {
        truth: [e for t, e in zip(truths, evidence, strict=True) if t == truth] for truth in (1, 0, -1)
    }
    return {
        "turns": len(turns),
        "evidence": rank(evidence, truths),
        "weight": rank(weights, truths),
        "mean_evidence": {truth: fmean(values) for truth, values in by_truth.items() if values},
        "stdev_evidence": {truth: stdev(values) for truth, values in by_truth.items() if len(values) > 1},
    }


def rank(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; ties share their mean rank."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return torch.corrcoef(torch.stack([ranks(first), ranks(second)]))[0, 1].item()


def ranks(values: Sequence[float]) -> torch.Tensor:
    tensor = torch.tensor(values, dtype=torch.float64)
    return (tensor[:, None] > tensor).sum(1) + ((tensor[:, None] == tensor).sum(1) - 1) / 2.0
