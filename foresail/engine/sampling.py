"""From logits and one uniform number per row to a token and its log-probability.

The log-probability is that of the distribution the token was sampled from: after temperature, top-k, top-p
and min-p. A greedy row (temperature 0) reports the model's own log-probability of its choice.

Legend: B rows, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SamplingRows:
    """Sampling settings of every row, as tensors."""

    temperature_B: Tensor
    top_p_B: Tensor
    top_k_B: Tensor
    min_p_B: Tensor

    @property
    def truncates_B(self) -> Tensor:
        return (self.top_k_B > 0) | (self.top_p_B < 1) | (self.min_p_B > 0)

    def __getitem__(self, rows: Tensor) -> SamplingRows:
        return SamplingRows(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def sample(
    logits_BV: Tensor, settings: SamplingRows, uniforms_B: Tensor, *, truncate: bool
) -> tuple[Tensor, Tensor]:
    """Tokens and log-probabilities; `truncate` says whether any row uses top-k, top-p or min-p."""
    greedy_B = settings.temperature_B == 0
    temperature_B = settings.temperature_B.masked_fill(greedy_B, 1.0)
    logprobs_BV = torch.log_softmax(logits_BV.float() / temperature_B[:, None], dim=-1)
    if truncate:
        # only those: others would be normalised once more, and change in their last bits
        cut_B1 = (settings.truncates_B & ~greedy_B)[:, None]
        logprobs_BV = torch.where(cut_B1, truncated(logprobs_BV, settings), logprobs_BV)
    tokens_B = inverse_cdf(logprobs_BV, uniforms_B)
    tokens_B = torch.where(greedy_B, logits_BV.argmax(-1), tokens_B)
    return tokens_B, logprobs_BV.gather(1, tokens_B[:, None]).squeeze(1)


def inverse_cdf(logprobs_BV: Tensor, uniforms_B: Tensor) -> Tensor:
    """The token in whose share of [0, 1) the uniform number falls, tokens laid out in vocabulary order."""
    # float64: with 150,000 tokens a float32 sum is off by more than a rare token's whole probability.
    cumulative_BV = logprobs_BV.double().exp().cumsum(-1)
    marks_B1 = (uniforms_B * cumulative_BV[:, -1])[:, None]
    tokens_B = torch.searchsorted(cumulative_BV, marks_B1, right=True).squeeze(1)
    # Only NaN falls past the end; the engine will see it in the log-probability and stop.
    return tokens_B.clamp_(max=logprobs_BV.shape[1] - 1)


def truncated(logprobs_BV: Tensor, settings: SamplingRows) -> Tensor:
    """Drop what top-k, then top-p, then min-p exclude, and renormalise. The best token always stays."""
    sorted_BV, order_BV = logprobs_BV.sort(dim=-1, descending=True, stable=True)
    rank_V = torch.arange(logprobs_BV.shape[1], device=logprobs_BV.device)
    top_k_B1 = settings.top_k_B[:, None]
    keep_BV = (top_k_B1 == 0) | (rank_V < top_k_B1)
    probs_BV = sorted_BV.exp() * keep_BV
    probs_BV = probs_BV / probs_BV.sum(-1, keepdim=True)
    before_BV = probs_BV.cumsum(-1) - probs_BV
    top_p_B1 = settings.top_p_B[:, None]
    keep_BV &= (before_BV < top_p_B1) | (top_p_B1 == 1)  # a sum of 150,000 tokens may round up to 1
    keep_BV &= probs_BV >= settings.min_p_B[:, None] * probs_BV[:, :1]
    keep_BV[:, 0] = True
    kept_BV = torch.zeros_like(keep_BV).scatter(1, order_BV, keep_BV)
    return torch.log_softmax(logprobs_BV.masked_fill(~kept_BV, -torch.inf), dim=-1)
