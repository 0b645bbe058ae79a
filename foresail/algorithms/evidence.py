"""Evidence for the verified answer in what the policy wrote: per token, per turn (PBSD).

Bayes' rule turns the question "how much likelier does this episode make the answer?" into one that two forward
passes can answer:

    log P(answer | q, episode) / P(answer | q)  =  log P(episode | q, answer) / P(episode | q)
                                                =  sum over tokens of  log pi_teacher - log pi_student

The teacher is the policy that was told the answer, the student one that was not. Only tokens that the policy wrote
count: what the world says does not depend on who was told what, so its probabilities cancel.

Legend: A teachers, T tokens of a sample, U its units: its turns, or its tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from foresail.records import Sample

LogProbs = Sequence[float | None] | Tensor

LEAST_LOGPROB = -100.0  # as good as impossible, and still comparable with other teachers
LEAST_SPREAD = 1e-6  # of evidence; below, units differ by rounding


@dataclass(frozen=True, kw_only=True)
class ScoredSample:
    """A sample and its tokens' log-probabilities by teachers and student, all parallel to `sample.ids`.

    One teacher for each alias of the answer. None, for a whole list or an entry, is what could not be computed: the
    evidence there is unknown. `ignored` is 1 for tokens that must not count: the final answer, which a teacher only
    copies, and what a chat template dictates.
    """

    sample: Sample
    teachers: Sequence[LogProbs | None]
    student: LogProbs | None
    ignored: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenEvidence:
    """Of each token, teacher minus student: NaN where unknown, no matter what where it does not count."""

    gains_T: Tensor
    counted_T: Tensor
    loss_T: Tensor
    turns_T: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Of each unit: N tokens with a loss, n of them counted, evidence e (the sum of gains) and |e| / sqrt(sum of
    squared gains), its signal against its noise. Both are 0 where `known_U` is false.
    """

    units_T: Tensor
    loss_tokens_U: Tensor
    counted_U: Tensor
    known_U: Tensor
    evidence_U: Tensor
    snr_U: Tensor


def token_evidence(scored: ScoredSample, *, clamp: float) -> TokenEvidence:
    """Teacher -1, student -3, clamp 5 -> 2; a token the teacher holds for impossible -> -5."""
    sample, size = scored.sample, len(scored.sample.ids)
    loss_T = torch.from_numpy(np.array(sample.loss_mask, dtype=bool))
    counted_T = loss_T
    if scored.ignored is not None:
        check_length("ignored", len(scored.ignored), size)
        counted_T = loss_T & ~torch.from_numpy(np.array(scored.ignored, dtype=bool))
    teachers = [to_tensor(found, size) for found in scored.teachers if found is not None]
    if not teachers or scored.student is None:
        gains_T = torch.full((size,), math.nan, dtype=torch.float64)
    else:
        gains_T = mix_teachers(torch.stack(teachers), counted_T) - to_tensor(scored.student, size)
    return TokenEvidence(
        gains_T=gains_T.clamp(-clamp, clamp),
        counted_T=counted_T,
        loss_T=loss_T,
        turns_T=torch.from_numpy(np.array(sample.turns, dtype=np.int64)),
    )


def to_tensor(logprobs: LogProbs, size: int) -> Tensor:
    """In float64, without gradient, on the host. None and +inf, which is no log-probability, become NaN."""
    check_length("log-probabilities", len(logprobs), size)
    if isinstance(logprobs, Tensor):
        found_T = logprobs.detach().to("cpu", torch.float64)
    else:
        found_T = torch.tensor([math.nan if x is None else x for x in logprobs], dtype=torch.float64)
    return torch.where(found_T == math.inf, math.nan, found_T)


def check_length(name: str, found: int, size: int) -> None:
    if found != size:
        raise ValueError(f"{found} {name} for a sample of {size} tokens; give one for each of its ids")


def mix_teachers(logprobs_AT: Tensor, counted_T: Tensor) -> Tensor:
    """Teachers with aliases of one answer as one teacher, who was told "one of these".

    The log of the mean likelihood of all tokens up to here, minus the same up to the token before: so the sum over
    an episode is log mean exp of the teachers' sums, and an alias that the episode does not go by fades. Equal
    beliefs at first: [log .2, log .2] and [log .4, log .1] -> [log .3, log(.2 / 3 + .1 * 2 / 3)].
    """
    if len(logprobs_AT) == 1:
        return logprobs_AT[0]
    logprobs_AT = logprobs_AT.clamp(min=LEAST_LOGPROB)
    known_T = counted_T & ~logprobs_AT.isnan().any(dim=0)
    # relative to the first teacher, which keeps the sums small
    steps_AT = torch.where(known_T, logprobs_AT - logprobs_AT[:1], 0.0)
    before_AT = pad(steps_AT, (1, 0))[:, :-1].cumsum(dim=1)
    return (before_AT.log_softmax(dim=0) + logprobs_AT).logsumexp(dim=0)


def gather(tokens: TokenEvidence, units_T: Tensor) -> Evidence:
    """Sums over the tokens of each unit. One unknown token makes its unit unknown: a part cannot be compared.

    Gains [1, 2, 5], the last of a tool, all in one turn: N = n = 2, e = 3, snr = 3 / sqrt(5).
    """
    num_units = int(units_T.max()) + 1 if len(units_T) else 0
    unknown_T = tokens.counted_T & tokens.gains_T.isnan()
    gains_T = torch.where(tokens.counted_T & ~unknown_T, tokens.gains_T, 0.0)
    columns = torch.stack([tokens.loss_T, tokens.counted_T, unknown_T, gains_T, gains_T**2])
    zeros = torch.zeros(len(columns), num_units, dtype=torch.float64)
    loss_tokens_U, counted_U, unknown_U, sum_U, squares_U = zeros.index_add(1, units_T, columns)
    known_U = (counted_U > 0) & (unknown_U == 0)
    evidence_U = torch.where(known_U, sum_U, 0.0)
    return Evidence(
        units_T=units_T,
        loss_tokens_U=loss_tokens_U,
        counted_U=counted_U,
        known_U=known_U,
        evidence_U=evidence_U,
        snr_U=evidence_U.abs() / (squares_U + 1e-8).sqrt(),
    )


def fade(found: Evidence) -> Evidence:
    """Each unit's evidence times min(1, exp(the sum before it)): once the episode speaks against the answer, a
    teacher who insists on it has nothing more to say. Evidence [1, -4, 2] -> [1, -4, 2 exp(-3)].
    """
    before_U = found.evidence_U.cumsum(0) - found.evidence_U
    return replace(found, evidence_U=found.evidence_U * before_U.clamp(max=0.0).exp())


def standardize(group: Sequence[Evidence]) -> list[Tensor]:
    """e / sqrt(n) of each unit, in standard deviations from the mean over all units of the group; 0 where unknown.

    The root, since a sum of n independent gains spreads that much. Units [1, 3] and [2] of one token each ->
    [-1.22, 1.22] and [0]. All zeros where the group has fewer than two known units, or all of them are alike.
    """
    values = [found.evidence_U / found.counted_U.clamp(min=1).sqrt() for found in group]
    known = [v for value_U, found in zip(values, group, strict=True) for v in value_U[found.known_U].tolist()]
    # fsum: the order of the samples must not change a bit
    mean = math.fsum(known) / max(1, len(known))
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / max(1, len(known)))
    if spread <= LEAST_SPREAD:
        return [torch.zeros_like(value_U) for value_U in values]
    return [
        torch.where(found.known_U, (value_U - mean) / (spread + 1e-6), 0.0)
        for value_U, found in zip(values, group, strict=True)
    ]
