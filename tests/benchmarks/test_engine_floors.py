"""The GPU benchmark's loads and floors, against numbers worked out by hand."""

from __future__ import annotations

import pytest
from gpu_clock import Ceilings
from gpu_loads import (
    LOADS,
    Load,
    attention_flops,
    block_weights,
    decode_steps,
    draw_requests,
    even,
    floor,
    head_weights,
    prefill_flops,
    step_bytes,
    step_flops,
)
from gpu_peer import PeerTime
from shapes import SHAPES

from foresail.recipe.shape.model_shape import ModelShape

# Blocks: 2 x (8 x 16 for q, k and v, 8 x 8 out, 3 x 8 x 16 in the MLP) = 1152 numbers; head 256; KV 16 a token.
SMALL = ModelShape(
    family="qwen2",
    qkv_bias=True,
    vocab_size=32,
    hidden_size=8,
    intermediate_size=16,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    max_context=64,
)
UNEVEN = Load(name="x", title="", groups=2, samples=2, prompt_length=3, lengths=(1, 3, 2, 2))


def test_the_long_tail_has_the_tokens_of_the_issue():
    assert LOADS["d"].tokens == 103_160
    assert max(LOADS["d"].lengths) == 2048


def test_loads_count_what_they_draw_or_what_they_read():
    tokens = {name: load.tokens for name, load in LOADS.items()}
    assert tokens == {"a": 16_384, "b": 65_536, "c": 524_288, "d": 103_160, "e": 256, "f": 131_072}


def test_prompts_are_shared_in_a_group_and_new_in_every_group_and_round():
    first, second = (draw_requests(UNEVEN, vocab_size=1000, number=number) for number in (0, 1))
    prompts = [request.prompt for request in first]
    assert prompts[0] == prompts[1] and prompts[2] == prompts[3]
    assert len({*prompts, *(request.prompt for request in second)}) == 4
    assert [request.sampling.max_new_tokens for request in first] == [1, 3, 2, 2]
    assert len({request.key for request in first + second}) == 8
    assert all(len(request.prompt) == 3 and max(request.prompt) < 1000 for request in first)


def test_parts_of_the_floor():
    assert (block_weights(SMALL), head_weights(SMALL)) == (1152, 256)
    assert attention_flops(SMALL) == 64  # 2 layers x 2 heads x 4 numbers, times 2 FLOPs, scores and sum
    # three tokens through the blocks, one through the head, 1 + 2 + 3 pairs
    assert prefill_flops(SMALL, 3) == 2 * (3 * 1152 + 256) + 64 * 6 == 7808
    assert step_flops(SMALL, rows=3, context=4) == 3 * (2 * 1408 + 64 * 4) == 9216
    assert step_bytes(SMALL, rows=3, cached_tokens=9) == 2 * 1408 + 32 * 9 == 3104


def test_rows_and_groups_leave_as_they_end():
    assert list(decode_steps(UNEVEN)) == [(1, 3, 2), (2, 1, 1)]
    assert list(decode_steps(even("x", "", groups=5, prompt=7, new=1))) == []


def test_floor_of_a_small_load():
    ceilings = Ceilings(copy_bytes_per_second=1, read_bytes_per_second=1000, flops_per_second=2000)
    least = floor(SMALL, UNEVEN, ceilings)
    assert least.prefill == pytest.approx(2 * 7808 / 2000)
    # step 1: three rows, two prompts of 3 and three tokens: 3104 bytes or 9216 FLOPs
    # step 2: one row, one prompt and two tokens: 2816 + 32 x 5 = 2976 bytes or 2816 + 64 x 5 = 3136 FLOPs
    assert least.decode == pytest.approx(9216 / 2000 + 2976 / 1000)
    assert (least.steps, least.steps_bound_by_bytes) == (2, 1)
    assert least.seconds == pytest.approx(7.808 + 4.608 + 2.976)


@pytest.mark.parametrize(("name", "billions"), [("1.5B", 1.543714304), ("7B", 7.615616512)])
def test_the_shapes_are_those_of_qwen2(name, billions):
    shape = SHAPES[name]
    assert shape.num_parameters == billions * 1e9
    others = shape.num_layers * (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim  # biases
    others += (2 * shape.num_layers + 1) * shape.hidden_size  # norms
    embeddings = head_weights(shape) * (1 if shape.tied else 2)
    assert block_weights(shape) + embeddings + others == shape.num_parameters


def test_floor_at_7b_is_what_a_calculator_says():
    ceilings = Ceilings(copy_bytes_per_second=4.3e12, read_bytes_per_second=4.43e12, flops_per_second=784e12)
    alone = floor(SHAPES["7B"], LOADS["e"], ceilings)
    # 14.14 GB of matrices a step take 3.19 ms, the cache 57,344 bytes a token: 3.3 us at 256 tokens
    assert alone.decode == pytest.approx(255 * 3.195e-3, rel=1e-3)
    assert alone.steps_bound_by_bytes == alone.steps == 255
    many = floor(SHAPES["7B"], LOADS["b"], ceilings)
    assert many.prefill == pytest.approx(256 * 128 * 13.05e9 / 784e12, rel=5e-3)
    # 256 rows of 14.141 GFLOP, and 0.401 MFLOP for each of 256 tokens in their middle context: 4.65 ms a step
    assert many.decode == pytest.approx(255 * 256 * (14.141e9 + 256 * 0.401e6) / 784e12, rel=1e-3)
    assert many.steps_bound_by_bytes == 0


def test_the_peer_runs_every_batch_to_its_longest_row():
    measured = PeerTime(batch=2, prefill=1.0, step=0.1, logprobs=0.01)
    assert measured.seconds(UNEVEN) == pytest.approx((1 + 2 * 0.1 + 3 * 0.01) + (1 + 0.1 + 2 * 0.01))
