"""Divergences of a student's distributions from a teacher's, without holding the logits of all tokens at once.

As in `likelihood.py`, logits are computed for a chunk of tokens at a time, and again in the backward pass. The
teacher is a constant: its hidden states and its head come from a pass without gradients.

    divergence_M = token_divergence(hidden_MD, weight_VD, teacher, DivergenceSettings(kind="reverse"))

Legend: M tokens, C of one chunk, D the student's hidden size, E the teacher's, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foresail.algorithms.divergences import DIVERGENCES
from foresail.model.likelihood import chunks
from foresail.model.linear import wide_linear

TABLES = 4  # tensors of a chunk's size in memory at once: both log-probabilities, and intermediate results


@dataclass(frozen=True, kw_only=True)
class DivergenceSettings:
    """`beta`: the teacher's share in the mixture of "js". `temperature` divides the logits of both."""

    kind: str
    beta: float = 0.5
    temperature: float = 1.0


@dataclass(frozen=True, kw_only=True)
class TeacherView:
    """A teacher's side of the tokens that are compared: hidden states, and the head that reads them."""

    hidden_ME: Tensor
    weight_VE: Tensor


def token_divergence(
    hidden_MD: Tensor, weight_VD: Tensor, teacher: TeacherView, comparison: DivergenceSettings
) -> Tensor:
    """The divergence at each token, with a gradient for the student alone.

    Heads may have rows behind the tokenizer's last id, one more than the other: what both have is compared.
    """
    teacher_VE, rows = teacher.weight_VE, min(len(weight_VD), len(teacher.weight_VE))
    weight_VD = weight_VD if rows == len(weight_VD) else weight_VD[:rows]
    return TokenDivergence.apply(hidden_MD, weight_VD, teacher.hidden_ME, teacher_VE[:rows], comparison)


class TokenDivergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_MD: Tensor,
        weight_VD: Tensor,
        teacher_ME: Tensor,
        teacher_VE: Tensor,
        comparison: DivergenceSettings,
    ) -> Tensor:
        divergence, beta = DIVERGENCES[comparison.kind], comparison.beta
        divergence_M = hidden_MD.new_empty(len(hidden_MD), dtype=torch.float32)
        for part in chunks(len(hidden_MD), weight_VD, tables=TABLES):
            student_CV = log_probabilities(hidden_MD[part], weight_VD, comparison.temperature)
            teacher_CV = log_probabilities(teacher_ME[part], teacher_VE, comparison.temperature)
            divergence_M[part] = divergence.value(student_CV, teacher_CV, beta)
        ctx.save_for_backward(hidden_MD, weight_VD, teacher_ME, teacher_VE)
        ctx.comparison = comparison
        return divergence_M

    @staticmethod
    def backward(ctx: Any, grad_M: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        hidden_MD, weight_VD, teacher_ME, teacher_VE = ctx.saved_tensors
        for_hidden, for_weight, *_ = ctx.needs_input_grad
        temperature, beta = ctx.comparison.temperature, ctx.comparison.beta
        slope = DIVERGENCES[ctx.comparison.kind].slope
        hidden_grad_MD = torch.empty_like(hidden_MD) if for_hidden else None
        weight_grad_VD = torch.zeros_like(weight_VD) if for_weight else None
        for part in chunks(len(hidden_MD), weight_VD, tables=TABLES):
            student_CV = log_probabilities(hidden_MD[part], weight_VD, temperature)
            teacher_CV = log_probabilities(teacher_ME[part], teacher_VE, temperature)
            gradients_CV = slope(student_CV, teacher_CV, beta) * (grad_M[part] / temperature)[:, None]
            gradients_CV = gradients_CV.to(hidden_MD.dtype)
            if hidden_grad_MD is not None:
                torch.mm(gradients_CV, weight_VD, out=hidden_grad_MD[part])
            if weight_grad_VD is not None:
                weight_grad_VD.addmm_(gradients_CV.t(), hidden_MD[part])
        return hidden_grad_MD, weight_grad_VD, None, None, None


def log_probabilities(hidden_CD: Tensor, weight_VD: Tensor, temperature: float) -> Tensor:
    logits_CV = wide_linear(hidden_CD, weight_VD)
    logits_CV = logits_CV.div_(temperature) if temperature != 1.0 else logits_CV
    return logits_CV.sub_(logits_CV.logsumexp(-1, keepdim=True))
