"""From logits to a token and its log-probability, without a copy of the logits: `sampling.sample` on CUDA.

It leaves out top-k, top-p and min-p. The first kernel reads every logit once and keeps two numbers per block
of the vocabulary; the second finds the block in which the row's uniform number falls, and reads that block
again. A row's result never depends on the other rows: each has its own programs, always of the same shape.

Legend: E entries, V vocabulary, N blocks of the vocabulary, W tokens of one block, S slots.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine import noise
from foresail.model.kernels.sizes import count_blocks, power_from

BLOCK = 4096  # tokens per block: 8 KB of bf16, 38 blocks of a vocabulary of 152,000
WEIGH_WARPS = 4  # 32 logits per thread: four loads of 16 bytes in flight hide the memory's latency
PICK_WARPS = 8  # one block per entry, so latency is all that counts

GOLDEN = tl.constexpr(noise.GOLDEN)
MIX_1 = tl.constexpr(noise.MIX_1)
MIX_2 = tl.constexpr(noise.MIX_2)
LOG2_E = tl.constexpr(1.4426950408889634)


def sample_untruncated(
    logits_EV: Tensor, slots_E: Tensor, temperature_S: Tensor, keys_S: Tensor, positions_E: Tensor
) -> tuple[Tensor, Tensor]:
    """The token that follows each entry, and its log-probability after temperature; 0 takes the best token.

    An entry at position 7 samples the token of position 8, with `uniforms(keys_S[slot], 8)`. NaN among its
    logits gives some token and the log-probability NaN.
    """
    entries, vocabulary = logits_EV.shape
    assert logits_EV.stride(1) == 1
    blocks = count_blocks(vocabulary, BLOCK)
    maxima_EN = torch.empty(entries, blocks, dtype=torch.float32, device=logits_EV.device)
    sums_EN = torch.empty_like(maxima_EN)
    tokens_E = torch.empty(entries, dtype=torch.int64, device=logits_EV.device)
    logprobs_E = torch.empty(entries, dtype=torch.float32, device=logits_EV.device)
    _weigh_blocks[(blocks, entries)](
        logits_EV,
        slots_E,
        temperature_S,
        maxima_EN,
        sums_EN,
        logits_EV.stride(0),
        vocabulary,
        BLOCK=BLOCK,
        num_warps=WEIGH_WARPS,
    )
    _pick_tokens[(entries,)](
        logits_EV,
        slots_E,
        temperature_S,
        keys_S,
        positions_E,
        maxima_EN,
        sums_EN,
        tokens_E,
        logprobs_E,
        logits_EV.stride(0),
        vocabulary,
        blocks,
        BLOCK=BLOCK,
        BLOCKS=power_from(blocks),
        num_warps=PICK_WARPS,
    )
    return tokens_E, logprobs_E


@triton.jit(do_not_specialize_on_alignment=["slots"])
def _weigh_blocks(logits, slots, temperatures, maxima, sums, row_stride, vocabulary, BLOCK: tl.constexpr):
    """One block of one entry: its greatest logit, and the sum of exp((logit - greatest) / temperature)."""
    block, entry = tl.program_id(0), tl.program_id(1)
    x_W = _load_block(logits, entry, block, row_stride, vocabulary, BLOCK)
    temperature = tl.load(temperatures + tl.load(slots + entry))
    greatest = tl.max(x_W, 0)
    cell = entry * tl.num_programs(0) + block
    tl.store(maxima + cell, greatest)
    tl.store(sums + cell, tl.sum(_weights(x_W, greatest, temperature), 0))


@triton.jit(do_not_specialize_on_alignment=["slots"])
def _pick_tokens(
    logits,
    slots,
    temperatures,
    keys,
    positions,
    maxima,
    sums,
    tokens,
    logprobs,
    row_stride,
    vocabulary,
    blocks,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    entry = tl.program_id(0)
    slot = tl.load(slots + entry)
    temperature = tl.load(temperatures + slot)
    greedy = temperature == 0
    uniform = _uniform(tl.load(keys + slot), tl.load(positions + entry) + 1)

    block_N = tl.arange(0, BLOCKS)
    maxima_N = tl.load(maxima + entry * blocks + block_N, block_N < blocks, other=float("-inf"))
    sums_N = tl.load(sums + entry * blocks + block_N, block_N < blocks, other=0.0)
    greatest = tl.max(maxima_N, 0)
    # float64 from here on: the mark must tell a rare token's share apart in the sum of all others.
    weights_N = sums_N.to(tl.float64) * _weights(maxima_N.to(tl.float64), greatest, temperature)
    total = tl.sum(weights_N, 0)
    mark = uniform * total
    block = _choose(weights_N, mark, maxima_N == greatest, greedy)
    before = tl.sum(tl.where(block_N < block, weights_N, 0.0), 0)
    weight = tl.sum(tl.where(block_N == block, weights_N, 0.0), 0)

    x_W = _load_block(logits, entry, block, row_stride, vocabulary, BLOCK)
    weights_W = _weights(x_W, tl.load(maxima + entry * blocks + block), temperature).to(tl.float64)
    # The two kernels round a block's sum differently, so what carries over is how far into it the mark lies.
    mark_within = (mark - before) / weight * tl.sum(weights_W, 0)
    token = block * BLOCK + _choose(weights_W, mark_within, x_W == greatest, greedy)
    x = tl.load(logits + entry.to(tl.int64) * row_stride + token).to(tl.float32)
    distance = (x - _finite(greatest)) / tl.where(greedy, 1.0, temperature)
    tl.store(tokens + entry, token.to(tl.int64))
    tl.store(logprobs + entry, (distance - tl.log(total)).to(tl.float32))


@triton.jit
def _load_block(logits, entry, block, row_stride, vocabulary, BLOCK: tl.constexpr):
    """float32 logits of one block; past the vocabulary's end they are -inf, which no sample can reach."""
    token_W = block * BLOCK + tl.arange(0, BLOCK)
    row = logits + entry.to(tl.int64) * row_stride  # 17,000 entries of 152,000 tokens outgrow 32 bits
    return tl.load(row + token_W, token_W < vocabulary, other=float("-inf")).to(tl.float32)


@triton.jit
def _weights(x, greatest, temperature):
    """exp((x - greatest) / temperature); a greedy row is weighed at temperature 1."""
    return tl.exp2((x - _finite(greatest)) * (LOG2_E / tl.where(temperature == 0, 1.0, temperature)))


@triton.jit
def _finite(greatest):
    """Where every logit is -inf, any finite number leaves the weights 0 instead of NaN."""
    return tl.where(greatest == float("-inf"), 0.0, greatest)


@triton.jit
def _choose(weights, mark, best, greedy):
    """The index in whose share of the sum the mark falls, or the first of the best.

    Weights (1, 0, 2) and mark 1.0 give 2: an index of weight 0 is never sampled. A mark that rounding has put
    past the end belongs to the last share. Where NaN makes every comparison false, some index is given.
    """
    index = tl.arange(0, weights.shape[0])
    some = weights > 0  # asked again below: the parallel sum may creep up, by rounding, over a share of 0
    last = tl.max(tl.where(some, index, 0), 0)
    wanted = tl.where(greedy, best, some & (tl.cumsum(weights, 0) > mark))
    return tl.min(tl.where(wanted, index, last), 0)


@triton.jit
def _uniform(key, position):
    """`noise.uniforms`, bit for bit."""
    x = key + (position + 1) * GOLDEN
    x = (x ^ _shift(x, 30)) * MIX_1
    x = (x ^ _shift(x, 27)) * MIX_2
    x = x ^ _shift(x, 31)
    return (_shift(x, 16).to(tl.float64) + 0.5) * 2.0**-48


@triton.jit
def _shift(x, bits: tl.constexpr):
    """Logical shift to the right; that of a signed number keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
