# mypy: allow-untyped-defs
"""From logits to log-probabilities and entropies in one reading, and to their gradient in another.

Legend: C tokens, V vocabulary.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks

COLUMNS = 4096  # of the vocabulary at a time, for a program of eight warps: sixteen logits a thread
SHAPE = {"BLOCK": COLUMNS, "num_warps": 8}


def score(logits_CV: Tensor, ids_C: Tensor, temperature: float) -> Tensor:
    """Log-probabilities, entropies and log-sums, one row each."""
    tokens, words = logits_CV.shape
    out_3C = logits_CV.new_empty(3, tokens)
    if tokens:
        score_kernel[(tokens,)](logits_CV, ids_C, out_3C, 1 / temperature, tokens, words, **SHAPE)
    return out_3C


def logit_gradients(
    logits_CV: Tensor,
    ids_C: Tensor,
    log_sums_C: Tensor,
    scale_C: Tensor,
    temperature: float,
    dtype: torch.dtype,
    by_entropy: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """scale x (1 at the token - probability), and the entropy's with its own scale; rounded once."""
    tokens, words = logits_CV.shape
    out_CV = torch.empty_like(logits_CV, dtype=dtype)
    if tokens:
        grid = (tokens, count_blocks(words, COLUMNS))
        scale_C = scale_C.contiguous()
        entropy_C, entropy_scale_C = (scale_C, scale_C) if by_entropy is None else by_entropy
        logit_gradients_kernel[grid](
            logits_CV,
            ids_C,
            log_sums_C,
            scale_C,
            entropy_C.contiguous(),
            entropy_scale_C.contiguous(),
            out_CV,
            1 / temperature,
            words,
            by_entropy is not None,
            **SHAPE,
        )
    return out_CV


@triton.jit(do_not_specialize=["tokens"])
def score_kernel(logits, ids, out, beta, tokens, words: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    # every column its own running maximum and sums: they meet once, at the end
    greatest = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    weighted = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, words, BLOCK):
        inside = start + columns < words
        value = tl.load(logits + token * words + start + columns, mask=inside, other=-1e30) * beta
        higher = tl.maximum(greatest, value)
        decay, weight = tl.exp(greatest - higher), tl.where(inside, tl.exp(value - higher), 0.0)
        total = total * decay + weight
        weighted = weighted * decay + weight * value
        greatest = higher
    top = tl.max(greatest, axis=0)
    decay = tl.exp(greatest - top)
    total_sum = tl.sum(total * decay, axis=0)
    log_sum = top + tl.log(total_sum)
    chosen = tl.load(logits + token * words + tl.load(ids + token)) * beta
    tl.store(out + token, chosen - log_sum)
    tl.store(out + tokens + token, log_sum - tl.sum(weighted * decay, axis=0) / total_sum)
    tl.store(out + 2 * tokens + token, log_sum)


@triton.jit
def logit_gradients_kernel(
    logits,
    ids,
    log_sums,
    scales,
    entropies,
    entropy_scales,
    out,
    beta,
    words,
    BY_ENTROPY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < words
    value = tl.load(logits + token * words + columns, mask=inside, other=0.0) * beta
    logprob = value - tl.load(log_sums + token)
    probability = tl.exp(logprob)
    here = tl.where(columns == tl.load(ids + token), 1.0, 0.0)
    gradient = tl.load(scales + token) * (here - probability)
    if BY_ENTROPY:
        slope = tl.load(entropy_scales + token) * (logprob + tl.load(entropies + token))
        gradient -= probability * slope
    tl.store(out + token * words + columns, gradient, mask=inside)
