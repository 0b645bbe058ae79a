"""Log-probabilities and entropies of tokens, without holding the logits of all tokens at once.

Logits are computed for a chunk of tokens at a time, reduced to a log-probability and an entropy each, and dropped;
the backward pass computes them again. With 150,000 words and 16,000 tokens that is one gigabyte instead of ten,
four times over.

    logprobs_M, entropy_M = token_likelihood(hidden_MD, weight_VD, ids_M, temperature)

Legend: M tokens, C of one chunk, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foresail.model.kernels import available
from foresail.model.linear import wide_linear
from foresail.recipe.estimates.memory import MOST_LOGITS


def token_likelihood(
    hidden_MD: Tensor, weight_VD: Tensor, ids_M: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Log-probability of each token, and the entropy of its distribution."""
    return TokenLikelihood.apply(hidden_MD, weight_VD, ids_M, temperature)


class TokenLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_MD: Tensor, weight_VD: Tensor, ids_M: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        scores_3M = hidden_MD.new_empty(3, len(ids_M), dtype=torch.float32)
        for part in chunks(len(ids_M), weight_VD):
            logits_CV = wide_linear(hidden_MD[part], weight_VD)
            scores_3M[:, part] = score(logits_CV, ids_M[part], temperature)
        logprobs_M, entropy_M, log_sums_M = scores_3M
        ctx.save_for_backward(hidden_MD, weight_VD, ids_M, log_sums_M, entropy_M)
        ctx.temperature = temperature
        ctx.set_materialize_grads(False)  # most losses do not use the entropy
        return logprobs_M, entropy_M

    @staticmethod
    def backward(
        ctx: Any, grad_M: Tensor | None, entropy_grad_M: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        hidden_MD, weight_VD, ids_M, log_sums_M, entropy_M = ctx.saved_tensors
        grad_M = torch.zeros_like(log_sums_M) if grad_M is None else grad_M
        for_hidden, for_weight, *_ = ctx.needs_input_grad
        hidden_grad_MD = torch.empty_like(hidden_MD) if for_hidden else None
        weight_grad_VD = torch.zeros_like(weight_VD) if for_weight else None
        for part in chunks(len(ids_M), weight_VD):
            logits_CV = wide_linear(hidden_MD[part], weight_VD)
            gradients_CV = logit_gradients(
                logits_CV,
                ids_M[part],
                log_sums_M[part],
                grad_M[part] / ctx.temperature,
                ctx.temperature,
                hidden_MD.dtype,
                None
                if entropy_grad_M is None
                else EntropyGradient(entropy_M[part], entropy_grad_M[part] / ctx.temperature),
            )
            if hidden_grad_MD is not None:
                torch.mm(gradients_CV, weight_VD, out=hidden_grad_MD[part])
            if weight_grad_VD is not None:
                weight_grad_VD.addmm_(gradients_CV.t(), hidden_MD[part])
        return hidden_grad_MD, weight_grad_VD, None, None


def chunks(count: int, weight_VD: Tensor, tables: int = 1) -> Iterator[slice]:
    """So many tokens at a time that `tables` of their logits stay within the limit."""
    size = max(1, MOST_LOGITS["cuda" if weight_VD.is_cuda else "cpu"] // (tables * len(weight_VD)))
    return (slice(start, start + size) for start in range(0, count, size))


def score(logits_CV: Tensor, ids_C: Tensor, temperature: float) -> Tensor:
    """Log-probabilities, entropies and log-sums, one row each; the logits may be overwritten."""
    if available.can_fuse(logits_CV):
        from foresail.model.kernels import likelihood

        return likelihood.score(logits_CV, ids_C, temperature)
    logits_CV = logits_CV.div_(temperature) if temperature != 1.0 else logits_CV
    top_C1 = logits_CV.amax(1, keepdim=True)
    logits_CV -= top_C1
    chosen_C = logits_CV.gather(1, ids_C[:, None]).squeeze(1)
    weights_CV = logits_CV.exp()
    sums_C = weights_CV.sum(1)
    entropy_C = sums_C.log() - weights_CV.mul_(logits_CV).sum(1) / sums_C
    return torch.stack((chosen_C - sums_C.log(), entropy_C, top_C1.squeeze(1) + sums_C.log()))


class EntropyGradient(NamedTuple):
    """The entropy of each token, and the loss's gradient by it."""

    entropy_C: Tensor
    scale_C: Tensor


def logit_gradients(
    logits_CV: Tensor,
    ids_C: Tensor,
    log_sums_C: Tensor,
    scale_C: Tensor,
    temperature: float,
    dtype: torch.dtype,
    by_entropy: EntropyGradient | None = None,
) -> Tensor:
    """What the loss gains by each logit: scale x (1 at the token - probability), and by the entropy H
    - its scale x probability x (log probability + H). The logits may be overwritten.
    """
    if available.can_fuse(logits_CV):
        from foresail.model.kernels import likelihood

        return likelihood.logit_gradients(
            logits_CV, ids_C, log_sums_C, scale_C, temperature, dtype, by_entropy
        )
    logits_CV = logits_CV.div_(temperature) if temperature != 1.0 else logits_CV
    logprobs_CV = logits_CV.sub_(log_sums_C[:, None])
    if by_entropy is None:
        gradients_CV = logprobs_CV.exp_().mul_(-scale_C[:, None])
    else:
        entropy_C, entropy_scale_C = by_entropy
        # -(scale + its scale (log probability + H)): what a probability is multiplied by
        slopes_CV = (logprobs_CV + entropy_C[:, None]).mul_(-entropy_scale_C[:, None]).sub_(scale_C[:, None])
        gradients_CV = logprobs_CV.exp_().mul_(slopes_CV)
    return gradients_CV.scatter_add_(1, ids_C[:, None], scale_C[:, None]).to(dtype)
