"""A router's choice in one kernel, where no gradient is wanted: scores, the best experts, and their weights.

Products of 16-bit numbers are exact in float32, and summed there.

Legend: T tokens, D hidden size, E routed experts, A active ones.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks, power_from

ROWS, DEPTH = 16, 128


def route(
    normed_TD: Tensor,
    weight_ED: Tensor,
    correction_E: Tensor | None,
    active: int,
    normalized: bool,
    least: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Experts (int32) and weights of each token, best first, and the logits of all."""
    (tokens, width), experts = normed_TD.shape, weight_ED.shape[0]
    chosen_TA = torch.empty(tokens, active, dtype=torch.int32, device=normed_TD.device)
    weights_TA = torch.empty(tokens, active, dtype=torch.float32, device=normed_TD.device)
    logits_TE = torch.empty(tokens, experts, dtype=torch.float32, device=normed_TD.device)
    if tokens:
        route_kernel[(count_blocks(tokens, ROWS),)](
            normed_TD.contiguous(),
            weight_ED,
            correction_E,
            chosen_TA,
            weights_TA,
            logits_TE,
            tokens,
            width,
            experts,
            least,
            ACTIVE=active,
            SLOTS=power_from(active),
            NORMALIZED=normalized,
            ROWS=ROWS,
            EXPERTS=max(16, power_from(experts)),
            DEPTH=DEPTH,
            num_warps=8,
            num_stages=4,
        )
    return chosen_TA, weights_TA, logits_TE


@triton.jit(do_not_specialize=["tokens"])
def route_kernel(
    normed,
    weight,
    correction,
    chosen,
    weights,
    logits,
    tokens,
    width,
    num_experts,
    least,
    ACTIVE: tl.constexpr,
    SLOTS: tl.constexpr,
    NORMALIZED: tl.constexpr,
    ROWS: tl.constexpr,
    EXPERTS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    experts = tl.arange(0, EXPERTS)
    depth = tl.arange(0, DEPTH)
    sums = tl.full((ROWS, EXPERTS), 0.0, tl.float32)
    for start in range(0, width, DEPTH):
        places = start + depth
        a = tl.load(
            normed + rows[:, None] * width + places[None, :],
            mask=(rows[:, None] < tokens) & (places[None, :] < width),
            other=0.0,
        )
        b = tl.load(
            weight + experts[None, :] * width + places[:, None],
            mask=(experts[None, :] < num_experts) & (places[:, None] < width),
            other=0.0,
        )
        sums = tl.dot(a, b.to(a.dtype), sums, input_precision="ieee")

    real = (experts < num_experts)[None, :]
    inside = (rows < tokens)[:, None]
    tl.store(logits + rows[:, None] * num_experts + experts[None, :], sums, mask=inside & real)
    sums = tl.where(real, sums, float("-inf"))
    scores = tl.exp(sums - tl.max(sums, 1)[:, None])
    scores = scores / tl.sum(scores, 1)[:, None]
    candidates = scores
    if correction is not None:
        candidates += tl.load(correction + experts, mask=experts < num_experts, other=0.0)[None, :]
    candidates = tl.where(real, candidates, float("-inf"))

    slots = tl.arange(0, SLOTS)
    best = tl.full((ROWS, SLOTS), 0, tl.int32)
    score = tl.full((ROWS, SLOTS), 0.0, tl.float32)
    for number in tl.static_range(ACTIVE):
        winner = tl.argmax(candidates, 1)[:, None]
        here = experts[None, :] == winner
        is_slot = (slots == number)[None, :]
        best = tl.where(is_slot, winner.to(tl.int32), best)
        score = tl.where(is_slot, tl.sum(tl.where(here, scores, 0.0), 1)[:, None], score)
        candidates = tl.where(here, float("-inf"), candidates)
    if NORMALIZED:
        score = score / tl.maximum(tl.sum(score, 1), least)[:, None]
    real_slots = inside & (slots < ACTIVE)[None, :]
    tl.store(chosen + rows[:, None] * ACTIVE + slots[None, :], best, mask=real_slots)
    tl.store(weights + rows[:, None] * ACTIVE + slots[None, :], score, mask=real_slots)
