"""Sampling noise as a pure function of (seed, step, problem, sample, position).

The first four are folded into one 64-bit key per request; the key and the token's position give one
uniform number through SplitMix64, a counter-based generator. There is no state, so batching, preemption
and replay cannot change a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

GOLDEN = -0x61C8864680B583EB  # 0x9E3779B97F4A7C15 as a signed 64-bit number: SplitMix64's increment
MIX_1 = -0x40A7B892E31B1A47  # 0xBF58476D1CE4E5B9
MIX_2 = -0x6B2FB644ECCEEE15  # 0x94D049BB133111EB


def noise_key(seed: int, step: int, problem: str, sample: int) -> int:
    """A signed 64-bit key: noise_key(0, 3, "gsm8k:17", 5) names one response."""
    text = f"{seed}\x1f{step}\x1f{problem}\x1f{sample}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def branch_key(key: int, prompt: Sequence[int], count: int) -> int:
    """The key of another response in an episode, to a prompt that was asked `count` times before."""
    text = f"{key}\x1f{count}\x1f{','.join(map(str, prompt))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def uniforms(keys_B: Tensor, positions_B: Tensor) -> Tensor:
    """One float64 in (0, 1) per row: the `position`-th number of the stream that `key` starts."""
    x = keys_B + (positions_B + 1) * GOLDEN
    x = (x ^ _shift(x, 30)) * MIX_1
    x = (x ^ _shift(x, 27)) * MIX_2
    x = x ^ _shift(x, 31)
    # 48 bits: fine enough for any token's probability, and scaling by a total can never round up to it.
    return (_shift(x, 16).to(torch.float64) + 0.5) * 2.0**-48


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical shift to the right; torch's own keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
