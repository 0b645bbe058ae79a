"""Evidence for the verified answer in the policy's tokens, by token or by turn (PBSD).

Bayes' rule turns the question "how much likelier does this episode make the answer?" into one that two forward
passes can answer:

    log P(answer | q, episode) / P(answer | q)  =  log P(episode | q, answer) / P(episode | q)
                                                =  sum over tokens of  log pi_teacher - log pi_student

The teacher is the policy with the answer in its prompt, the student the policy without it. Only tokens that the
policy wrote count: the environment's tokens do not depend on the hint, so their probabilities cancel.

Legend: A teachers, N samples of a group, T their tokens, U their units: turns, or tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from foresail.records import Sample

LogProbs = Sequence[float | None] | Tensor

LEAST_LOGPROB = -100.0  # nearly impossible, but finite, so that teachers can be compared
LEAST_SPREAD = 1e-6  # of evidence; below, units differ by rounding


@dataclass(frozen=True, kw_only=True)
class ScoredSample:
    """A sample and its tokens' log-probabilities by teachers and student, all parallel to `sample.ids`.

    One teacher for each alias of the answer. None, for a whole list or an entry, means unknown evidence. `ignored`
    is 1 for tokens that must not count: the final answer, which a teacher only copies, and the chat template's
    tokens.
    """

    sample: Sample
    teachers: Sequence[LogProbs | None]
    student: LogProbs | None
    ignored: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenEvidence:
    """Of each token of a group, its samples one behind the other, teacher minus student: NaN where unknown, no
    matter what where it does not count. Turns are numbered through the group.
    """

    gains_T: Tensor
    counted_T: Tensor
    loss_T: Tensor
    turns_T: Tensor
    sizes: list[int]  # tokens of each sample
    num_turns: list[int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Of each unit of a group: its sample, N tokens with a loss, n of them counted, evidence e (the sum of gains)
    and |e| / sqrt(sum of squared gains), its signal against its noise. Both are 0 where `known_U` is false.
    """

    units_T: Tensor
    samples_U: Tensor
    sizes: Sequence[int]  # units of each sample
    loss_tokens_U: Tensor
    counted_U: Tensor
    known_U: Tensor
    evidence_U: Tensor
    snr_U: Tensor


def token_evidence(group: Sequence[ScoredSample], *, clamp: float) -> TokenEvidence:
    """Teacher -1, student -3, clamp 5 -> 2; a token that is impossible for the teacher -> -5."""
    samples = [scored.sample for scored in group]
    sizes = [len(sample.ids) for sample in samples]
    for scored, size in zip(group, sizes, strict=True):
        check_lengths(scored, size)
    loss_T = lay_out([sample.loss_mask for sample in samples], np.bool_)
    nothing = [[0] * size for size in sizes]
    ignored_T = lay_out(
        [scored.ignored or none for scored, none in zip(group, nothing, strict=True)], np.bool_
    )
    counted_T = loss_T & ~ignored_T
    teachers = map(teacher_logprobs, group, counted_T.split(sizes))
    students = (to_tensor(scored.student, size) for scored, size in zip(group, sizes, strict=True))
    teacher_T, student_T = (without_infinity(torch.cat([*logprobs])) for logprobs in (teachers, students))
    num_turns = [max(sample.turns, default=-1) + 1 for sample in samples]
    before = torch.tensor([*accumulate(num_turns, initial=0)][:-1])
    turns_T = lay_out([sample.turns for sample in samples], np.int64)
    return TokenEvidence(
        gains_T=(teacher_T - student_T).clamp(-clamp, clamp),
        counted_T=counted_T,
        loss_T=loss_T,
        turns_T=turns_T + repeat(before, sizes),
        sizes=sizes,
        num_turns=num_turns,
    )


def lay_out(lists: Sequence[Sequence[int]], dtype: type) -> Tensor:
    """[[1, 0], [1]] -> [1, 0, 1]."""
    return torch.from_numpy(np.concatenate([np.array(values, dtype=dtype) for values in lists]))


def repeat(values_N: Tensor, counts: Sequence[int]) -> Tensor:
    """repeat([5, 7], [2, 1]) -> [5, 5, 7]."""
    return values_N.repeat_interleave(torch.tensor(counts))


def check_lengths(scored: ScoredSample, size: int) -> None:
    for name, values in (
        *(("log-probabilities", logprobs) for logprobs in (*scored.teachers, scored.student)),
        ("ignored", scored.ignored),
    ):
        if values is not None and len(values) != size:
            raise ValueError(
                f"{len(values)} {name} for a sample of {size} tokens; give one for each of its ids"
            )


def teacher_logprobs(scored: ScoredSample, counted_T: Tensor) -> Tensor:
    """The mixture of all teachers; NaN where there is none."""
    teachers = [to_tensor(logprobs, len(counted_T)) for logprobs in scored.teachers if logprobs is not None]
    if len(teachers) < 2:
        return teachers[0] if teachers else to_tensor(None, len(counted_T))
    return mix_teachers(without_infinity(torch.stack(teachers)), counted_T)


def to_tensor(logprobs: LogProbs | None, size: int) -> Tensor:
    """In float64, without gradient, on the host; NaN for what could not be computed."""
    if logprobs is None:
        return torch.full((size,), math.nan, dtype=torch.float64)
    if isinstance(logprobs, Tensor):
        return logprobs.detach().to("cpu", torch.float64)
    return torch.tensor([math.nan if x is None else x for x in logprobs], dtype=torch.float64)


def without_infinity(logprobs_T: Tensor) -> Tensor:
    """+inf is no log-probability."""
    return torch.where(logprobs_T == math.inf, math.nan, logprobs_T)


def mix_teachers(logprobs_AT: Tensor, counted_T: Tensor) -> Tensor:
    """Teachers with aliases of one answer as one teacher, whose hint is "one of these".

    The log of the mean likelihood of all tokens up to here, minus the same up to the token before: so the sum over
    an episode is log mean exp of the teachers' sums, and an alias that the episode does not go by fades. Equal
    beliefs at first: [log .2, log .2] and [log .4, log .1] -> [log .3, log(.2 / 3 + .1 * 2 / 3)].
    """
    logprobs_AT = logprobs_AT.clamp(min=LEAST_LOGPROB)
    known_T = counted_T & ~logprobs_AT.isnan().any(dim=0)
    # relative to the first teacher, which keeps the sums small
    steps_AT = torch.where(known_T, logprobs_AT - logprobs_AT[:1], 0.0)
    before_AT = pad(steps_AT, (1, 0))[:, :-1].cumsum(dim=1)
    return (before_AT.log_softmax(dim=0) + logprobs_AT).logsumexp(dim=0)


def by_turn(tokens: TokenEvidence) -> Evidence:
    return gather(tokens, tokens.turns_T, tokens.num_turns)


def by_token(tokens: TokenEvidence) -> Evidence:
    """Evidence with every token as a unit."""
    return gather(tokens, torch.arange(len(tokens.turns_T)), tokens.sizes)


def gather(tokens: TokenEvidence, units_T: Tensor, num_units: Sequence[int]) -> Evidence:
    """Sums over the tokens of each unit. One unknown token makes its unit unknown: a part cannot be compared.

    Gains [1, 2, 5], the last of a tool, all in one turn: N = n = 2, e = 3, snr = 3 / sqrt(5).
    """
    unknown_T = tokens.counted_T & tokens.gains_T.isnan()
    gains_T = torch.where(tokens.counted_T & ~unknown_T, tokens.gains_T, 0.0)
    columns = torch.stack([tokens.loss_T, tokens.counted_T, unknown_T, gains_T, gains_T**2])
    zeros = torch.zeros(len(columns), sum(num_units), dtype=torch.float64)
    loss_tokens_U, counted_U, unknown_U, sum_U, squares_U = zeros.index_add(1, units_T, columns)
    known_U = (counted_U > 0) & (unknown_U == 0)
    evidence_U = torch.where(known_U, sum_U, 0.0)
    return Evidence(
        units_T=units_T,
        samples_U=repeat(torch.arange(len(num_units)), num_units),
        sizes=num_units,
        loss_tokens_U=loss_tokens_U,
        counted_U=counted_U,
        known_U=known_U,
        evidence_U=evidence_U,
        snr_U=evidence_U.abs() / (squares_U + 1e-8).sqrt(),
    )


def fade(evidence: Evidence) -> Evidence:
    """Each unit's evidence times min(1, exp(the sum before it)): once the episode is evidence against the answer,
    later evidence of a teacher that insists on it counts less. Evidence [1, -4, 2] -> [1, -4, 2 exp(-3)].
    """
    samples = evidence.evidence_U.split(list(evidence.sizes))
    before_U = torch.cat([evidence_U.cumsum(0) - evidence_U for evidence_U in samples])
    return replace(evidence, evidence_U=evidence.evidence_U * before_U.clamp(max=0.0).exp())


def standardize(evidence: Evidence) -> Tensor:
    """e / sqrt(n) of each unit, in standard deviations from the mean over all units of the group; 0 where unknown.

    A sum of n independent gains has a spread of sqrt(n). Units [1, 3] and [2] of one token each ->
    [-1.22, 1.22, 0]. All zeros where the group has fewer than two known units, or all of them are alike.
    """
    values_U = evidence.evidence_U / evidence.counted_U.clamp(min=1).sqrt()
    known_values = values_U[evidence.known_U].tolist()
    # fsum: the order of the samples must not change a bit
    mean = math.fsum(known_values) / max(1, len(known_values))
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in known_values) / max(1, len(known_values)))
    if spread <= LEAST_SPREAD:
        return torch.zeros_like(values_U)
    return torch.where(evidence.known_U, (values_U - mean) / (spread + 1e-6), 0.0)
