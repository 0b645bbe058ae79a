"""Divergences of a student's next-token distribution from a teacher's, and their gradients by the logits.

    reverse   KL(p || q) = sum p (log p - log q)      p: the student's, q: the teacher's; seeks a mode of q
    forward   KL(q || p) = sum q (log q - log p)      covers all of q
    js        beta KL(q || m) + (1 - beta) KL(p || m), m = beta q + (1 - beta) p: between the two (GKD's generalised
              Jensen-Shannon divergence)

Each is exact, over the whole vocabulary. `sampled_advantages` is the estimate from the sampled tokens alone.

Legend: C tokens, V vocabulary, M tokens with a loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Each token's divergence, (C,), and its gradient by the student's logits, (C, V), from the log-probabilities
    of both, (C, V), and beta.
    """

    value: Callable[[Tensor, Tensor, float], Tensor]
    slope: Callable[[Tensor, Tensor, float], Tensor]


def kl(from_CV: Tensor, to_CV: Tensor) -> Tensor:
    """KL(from || to) of log-probabilities: of [1/2, 1/2] from [1/4, 3/4], (log 2 + log 2/3) / 2 = 0.14."""
    return (from_CV.exp() * (from_CV - to_CV)).sum(-1)


def reverse_value(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    return kl(student_CV, teacher_CV)


def reverse_slope(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    """p (log p - log q - KL): probability goes where the student is more doubtful than the teacher."""
    return about_mean(student_CV, student_CV - teacher_CV)


def forward_value(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    return kl(teacher_CV, student_CV)


def forward_slope(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    """p - q, as in supervised learning with the teacher's probabilities for labels."""
    return student_CV.exp() - teacher_CV.exp()


def js_value(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    middle_CV = mix(student_CV, teacher_CV, beta)
    return beta * kl(teacher_CV, middle_CV) + (1 - beta) * kl(student_CV, middle_CV)


def js_slope(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    """(1 - beta) p (log p - log m - KL(p || m)): what m gains by p is lost again by the other terms."""
    return (1 - beta) * about_mean(student_CV, student_CV - mix(student_CV, teacher_CV, beta))


def mix(student_CV: Tensor, teacher_CV: Tensor, beta: float) -> Tensor:
    """Log-probabilities of beta q + (1 - beta) p."""
    return torch.logaddexp(teacher_CV + math.log(beta), student_CV + math.log1p(-beta))


def about_mean(student_CV: Tensor, values_CV: Tensor) -> Tensor:
    """p (values - their mean under p): the gradient of that mean by the logits, values held fixed."""
    p_CV = student_CV.exp()
    return p_CV * (values_CV - (p_CV * values_CV).sum(-1, keepdim=True))


DIVERGENCES = {
    "reverse": Divergence(value=reverse_value, slope=reverse_slope),
    "forward": Divergence(value=forward_value, slope=forward_slope),
    "js": Divergence(value=js_value, slope=js_slope),
}


def sampled_advantages(teacher_logprobs_M: Tensor, student_logprobs_M: Tensor) -> Tensor:
    """log q - log p of the tokens that the student drew: as an advantage its policy gradient is that of the reverse
    divergence, token by token, on average. A token the teacher finds twice as likely: +0.69.
    """
    return (teacher_logprobs_M - student_logprobs_M).detach()
