"""Advantages of single tokens from a sample's advantage: the recipe's [credit].

For PBSD and OPSD the policy scores every sample twice, with the weights that drew it: with the answer in its
prompt, and without it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev

from torch import Tensor
from torch.nn.functional import pad

from foresail.algorithms.advantages import uniform_credit
from foresail.algorithms.evidence import ScoredSample
from foresail.algorithms.self_distillation import distill_with_hint
from foresail.algorithms.turn_credit import SampleCredit, pbsd_credit
from foresail.algorithms.turn_rewards import turn_reward_credit
from foresail.data.problems.hints import hint, with_hint
from foresail.recipe.tables.credit import Credit
from foresail.records import Group, Problem, Sample, TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.update.scoring import Score

TokenAdvantages = list[list[float]]  # of a group's samples
Credits = Sequence[Sequence[SampleCredit]]  # of groups, where turns are weighed
ALIASES = "aliases"  # of an answer, in a problem's extra
ANSWER_MARKS = re.compile(rb"\\boxed\{|<answer>|####")


@dataclass(frozen=True, kw_only=True)
class SharedCredit:
    """Advantages of all tokens, and the credit of turns where turns were weighed. Without a hint the student's
    log-probabilities are the trainer's own.
    """

    advantages: list[TokenAdvantages]
    metrics: Mapping[str, float] = field(default_factory=dict)
    credits: Credits = ()
    logprobs: list[list[list[float]]] | None = None


def share_credit(
    groups: Sequence[Group],
    advantages_GN: Tensor,
    settings: Credit,
    *,
    step: int,
    tokenizer: Tokenizer,
    max_length: int,
    score: Score,
) -> SharedCredit:
    advantages = advantages_GN.tolist()
    if settings.kind == "pbsd":
        scored = score_groups(groups, settings, tokenizer=tokenizer, max_length=max_length, score=score)
        strength = settings.strength_at(step)
        credits = [
            pbsd_credit(group, row, settings, strength=strength)
            for group, row in zip(scored, advantages, strict=True)
        ]
        return SharedCredit(
            advantages=[[credit.advantages for credit in group] for group in credits],
            metrics=credit_metrics(credits),
            credits=credits,
            logprobs=student_logprobs(scored) if settings.student == "plain" else None,
        )
    if settings.kind == "opsd":
        scored = score_groups(groups, settings, tokenizer=tokenizer, max_length=max_length, score=score)
        self_distilled = [
            distill_with_hint(group, row, weight=settings.distill_weight, clamp=settings.clamp)
            for group, row in zip(scored, advantages, strict=True)
        ]
        tokens = sum(group.tokens for group in self_distilled)
        return SharedCredit(
            advantages=[group.advantages for group in self_distilled],
            metrics={"distill/told": sum(group.divergence for group in self_distilled) / max(1, tokens)},
            logprobs=student_logprobs(scored),
        )
    if settings.kind == "turn_rewards":
        shared = [
            turn_reward_credit(
                group.samples,
                row,
                [sample.turn_rewards for sample in group.samples],
                weight=settings.turn_weight,
            )
            for group, row in zip(groups, advantages, strict=True)
        ]
        return SharedCredit(advantages=shared)
    return SharedCredit(advantages=uniform_advantages(groups, advantages_GN))


def uniform_advantages(groups: Sequence[Group], advantages_GN: Tensor) -> list[TokenAdvantages]:
    """Every token gets its sample's advantage."""
    return [
        [uniform_credit(sample, advantage) for sample, advantage in zip(group.samples, row, strict=True)]
        for group, row in zip(groups, advantages_GN.tolist(), strict=True)
    ]


# Log-probabilities of the policy's own samples, with the answer in the prompt and without it.


def score_groups(
    groups: Sequence[Group], settings: Credit, *, tokenizer: Tokenizer, max_length: int, score: Score
) -> list[list[ScoredSample]]:
    """Scores all samples in one call, so that they share micro-batches and prompts."""
    spelled = tokenizer.token_bytes()
    teachers = [[hint(settings, answer) for answer in answers_of(group.problem)] for group in groups]
    students = [student_hints(settings, group, groups) for group in groups]
    sequences: dict[tuple[int, int, str], TrainSequence] = {}
    for row, group in enumerate(groups):
        for text in dict.fromkeys([*teachers[row], *students[row]]):
            prompt = tokenizer.encode_prompt(with_hint(group.problem.prompt, text)) if text else None
            for number, sample in enumerate(group.samples):
                if text not in (*teachers[row], students[row][number]):
                    continue
                sequence = after_prompt(sample, prompt, f"{group.problem.id} sample {number}")
                if len(sequence.ids) <= max_length:
                    sequences[row, number, text] = sequence
    logprobs = dict(zip(sequences, score([*sequences.values()]), strict=True))
    return [
        [
            ScoredSample(
                sample=sample,
                teachers=[
                    behind_own_prompt(logprobs.get((row, number, text)), sample) for text in teachers[row]
                ],
                student=behind_own_prompt(logprobs.get((row, number, students[row][number])), sample),
                ignored=final_answer(sample, group.problem, spelled)
                if settings.kind == "pbsd" and settings.answer == "ignored"
                else None,
            )
            for number, sample in enumerate(group.samples)
        ]
        for row, group in enumerate(groups)
    ]


def student_logprobs(scored: Sequence[Sequence[ScoredSample]]) -> list[list[list[float]]] | None:
    """None where a sample could not be scored."""
    students = [[sample.student for sample in group] for group in scored]
    if not all(isinstance(student, Tensor) for group in students for student in group):
        return None
    return [[student.tolist() for student in group] for group in students]  # type: ignore[union-attr]


def behind_own_prompt(logprobs_T: Tensor | None, sample: Sample) -> Tensor | None:
    """Parallel to the sample's own ids, also where another prompt was put before them."""
    if logprobs_T is None:
        return None
    first = sample.loss_mask.index(1)
    return pad(logprobs_T[len(logprobs_T) - (len(sample.ids) - first) :], (first, 0), value=math.nan)


def answers_of(problem: Problem) -> list[str]:
    """The answer and its aliases; empty where the problem has no answer."""
    aliases = problem.extra.get(ALIASES, ())
    answers = [problem.answer, *(aliases if isinstance(aliases, list | tuple) else ())]
    return [*dict.fromkeys(answer for answer in answers if answer)]


def student_hints(settings: Credit, group: Group, groups: Sequence[Group]) -> list[str]:
    """The hint of each sample's student: none (""), that there is an answer, or another problem's answer. A right
    sample is compared with a student who believes a wrong answer; a wrong sample with one who has no hint.
    """
    wrong = wrong_hint(settings, group.problem, groups)
    match settings.student:
        case "placebo":
            return [hint(settings, settings.withheld)] * len(group.samples)
        case "contrastive":
            return [wrong] * len(group.samples)
        case "mixed":
            return [wrong if verdict.status == "correct" else "" for verdict in group.verdicts]
        case _:
            return [""] * len(group.samples)


def wrong_hint(settings: Credit, problem: Problem, groups: Sequence[Group]) -> str:
    """Another problem's answer; empty where the step has none."""
    others = [group.problem.answer for group in groups if group.problem.answer != problem.answer]
    mine = [group.problem.id for group in groups].index(problem.id)
    return hint(settings, others[mine % len(others)]) if others else ""


def after_prompt(sample: Sample, prompt: list[int] | None, name: str) -> TrainSequence:
    """A sample's own tokens behind another prompt; None: behind its own."""
    first = sample.loss_mask.index(1)
    before = sample.ids[:first] if prompt is None else prompt
    side = {key: [None] * len(before) + values[first:] for key, values in sample.side.items()}
    return TrainSequence(
        name=name,
        ids=[*before, *sample.ids[first:]],
        loss_mask=[0] * len(before) + sample.loss_mask[first:],
        side=side,
    )


def final_answer(sample: Sample, problem: Problem, spelled: Sequence[bytes]) -> list[int]:
    """1 for the last turn's tokens from its final answer on, which a teacher with the answer only copies."""
    ignored = [0] * len(sample.ids)
    start = sample.turns.index(sample.turns[-1])
    places = [place for place in range(start, len(sample.ids)) if sample.loss_mask[place]]
    text = b"".join(spelled[sample.ids[place]] for place in places)
    marks = [mark.start() for mark in ANSWER_MARKS.finditer(text)]
    begin = marks[-1] if marks else text.rfind(problem.answer.encode()) if problem.answer else -1
    if begin < 0:
        return ignored
    end = 0
    for place in places:
        end += len(spelled[sample.ids[place]])
        ignored[place] = int(end > begin)
    return ignored


def credit_metrics(credits: Credits) -> dict[str, float]:
    """How clear the evidence was and how far weights are apart, over the turns of a step."""
    turns = [turn for group in credits for credit in group for turn in credit.turns]
    evidence = [turn.evidence for turn in turns if turn.evidence is not None]
    if not turns:
        return {}
    return {
        "credit/used/share": fmean(turn.used for turn in turns),
        "credit/weight/std": pstdev(turn.weight for turn in turns),
        "credit/evidence/mean": fmean(evidence) if evidence else 0.0,
        "credit/evidence/std": pstdev(evidence) if evidence else 0.0,
    }
