"""What `engine_gpu.py` measures: loads, and the least time a load can take.

The floor counts only work that no engine can avoid:

    prefill   FLOPs over the matmul ceiling; the prompt of a group once
    decode    every step the longer of bytes over the read ceiling and FLOPs over the matmul ceiling; a step
              reads all matrices once and the KV of every row once, a group's prompt once for the group; of
              routed experts those that some row is expected to choose, were all chosen alike

All requests run at once and each step lacks those that have ended. The first token comes from the prefill, so
n tokens take n - 1 steps. Left out, since small: writes, norms, biases, embedding rows, sampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from gpu_clock import Ceilings

from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Sampling

BF16 = 2  # bytes
WARM_UP_TOKENS = 8  # each request draws before a load is timed


@dataclass(frozen=True, kw_only=True)
class Load:
    """Groups of requests with one prompt each, and the tokens every request draws, group after group."""

    name: str
    title: str
    groups: int
    samples: int = 1
    prompt_length: int
    lengths: tuple[int, ...]

    @property
    def prefill_only(self) -> bool:
        return max(self.lengths) == 1

    @property
    def tokens(self) -> int:
        """Tokens that count: those drawn, or where nothing but the prefill is measured, those read."""
        return self.groups * self.prompt_length if self.prefill_only else sum(self.lengths)


def even(name: str, title: str, *, groups: int, samples: int = 1, prompt: int, new: int) -> Load:
    lengths = (new,) * (groups * samples)
    return Load(name=name, title=title, groups=groups, samples=samples, prompt_length=prompt, lengths=lengths)


def long_tail(num_requests: int) -> tuple[int, ...]:
    """Median 256, sigma 1, at most 2048, rounded down: 103,160 tokens for 256 requests."""
    drawn = np.random.default_rng(0).lognormal(np.log(256), 1, num_requests)
    return tuple(np.minimum(drawn, 2048).astype(int).tolist())


# Seconds a round should take at 7B, from vLLM's figures: 1.5, 3, 20, 12, 1.2 and 3; at 1.5B about half.
# Three rounds of everything are then two minutes at 7B and one at 1.5B, and start-up comes on top.
LOADS = {
    load.name: load
    for load in (
        even("a", "64 x 128 in, 256 out", groups=64, prompt=128, new=256),
        even("b", "256 x 128 in, 256 out", groups=256, prompt=128, new=256),
        even("c", "128 groups of 8, 512 in, 512 out", groups=128, samples=8, prompt=512, new=512),
        Load(
            name="d",
            title="256 x 128 in, long tail out",
            groups=256,
            prompt_length=128,
            lengths=long_tail(256),
        ),
        even("e", "1 x 128 in, 256 out", groups=1, prompt=128, new=256),
        even("f", "128 x 1024 in, prefill only", groups=128, prompt=1024, new=1),
    )
}


def draw_requests(load: Load, vocab_size: int, number: int) -> list[Request]:
    """The load's requests for one round. Prompts are new in every round: nothing kept from the last helps."""
    numbers = np.random.default_rng((number, ord(load.name[0])))
    prompts = numbers.integers(vocab_size, size=(load.groups, load.prompt_length)).tolist()
    return [
        Request(
            id=f"{load.name}.{number}.{index}",
            prompt=tuple(prompts[index // load.samples]),
            key=noise_key(0, number, load.name, index),
            sampling=Sampling(max_new_tokens=length),
        )
        for index, length in enumerate(load.lengths)
    ]


# The floor.


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The least seconds a load can take, and how many of its decode steps are bound by bytes, not by FLOPs."""

    prefill: float
    decode: float
    steps: int
    steps_bound_by_bytes: int

    @property
    def seconds(self) -> float:
        return self.prefill + self.decode


def floor(shape: ModelShape, load: Load, ceilings: Ceilings) -> Floor:
    prefill = load.groups * prefill_flops(shape, load.prompt_length) / ceilings.flops_per_second
    decode, steps, bound_by_bytes = 0.0, 0, 0
    for drawn, rows, groups in decode_steps(load):
        cached = groups * load.prompt_length + rows * drawn
        reading = step_bytes(shape, rows, cached) / ceilings.read_bytes_per_second
        computing = step_flops(shape, rows, load.prompt_length + drawn) / ceilings.flops_per_second
        decode += max(reading, computing)
        bound_by_bytes += reading > computing
        steps += 1
    return Floor(prefill=prefill, decode=decode, steps=steps, steps_bound_by_bytes=bound_by_bytes)


def decode_steps(load: Load) -> Iterator[tuple[int, int, int]]:
    """Tokens each row has drawn before the step, rows, and groups that still have a row.

    Two requests of 1 and 3 tokens with one prompt: (1, 1, 1), (2, 1, 1).
    """
    lengths_GS = np.array(load.lengths).reshape(load.groups, load.samples)
    for drawn in range(1, max(load.lengths)):
        running_GS = lengths_GS > drawn
        yield drawn, int(running_GS.sum()), int(running_GS.any(1).sum())


def prefill_flops(shape: ModelShape, num_tokens: int) -> int:
    """One prompt; scores over the vocabulary for its last token only."""
    pairs = num_tokens * (num_tokens + 1) // 2
    matrices = num_tokens * block_weights(shape, active(shape)) + head_weights(shape)
    return 2 * int(matrices) + attention_flops(shape) * pairs


def step_flops(shape: ModelShape, rows: int, context: int) -> int:
    matrices = block_weights(shape, active(shape)) + head_weights(shape)
    return rows * (2 * int(matrices) + attention_flops(shape) * context)


def step_bytes(shape: ModelShape, rows: int, cached_tokens: int) -> int:
    matrices = block_weights(shape, touched(shape, rows)) + head_weights(shape)
    return BF16 * (round(matrices) + shape.kv_values_per_token * cached_tokens)


def block_weights(shape: ModelShape, routed: float = 0) -> float:
    """Numbers in the matrices of all blocks, with that many routed experts each; 6.5 billion at 7B."""
    qkv_width = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim
    attention = shape.hidden_size * (qkv_width + shape.num_heads * shape.head_dim)
    inner: float = shape.intermediate_size
    if shape.experts is not None:
        inner = (routed + shape.experts.shared) * shape.experts.inner_size
    return shape.num_layers * (attention + 3 * shape.hidden_size * inner)


def active(shape: ModelShape) -> int:
    return 0 if shape.experts is None else shape.experts.active


def touched(shape: ModelShape, rows: int) -> float:
    """Routed experts of a layer that at least one of the rows is expected to choose: 4 for one row, of 48."""
    if shape.experts is None:
        return 0
    left_out = 1 - shape.experts.active / shape.experts.routed
    return shape.experts.routed * (1 - left_out**rows)


def head_weights(shape: ModelShape) -> int:
    return shape.vocab_size * shape.hidden_size


def attention_flops(shape: ModelShape) -> int:
    """For one token that looks at one other: scores and weighted sum, in all heads and layers."""
    return 4 * shape.num_layers * shape.num_heads * shape.head_dim
