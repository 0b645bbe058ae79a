"""FLOPs and shares of an update, against counts by hand and PyTorch's own counter."""

from __future__ import annotations

import pytest
import torch
from small_training import SHAPE, small_model, small_sequences
from torch.utils.flop_counter import FlopCounterMode

from foresail.data.packing import pack
from foresail.records import TrainSequence
from foresail.train.effort import count_flops, count_pairs, describe_device, describe_updates, useful_share
from foresail.train.step import token_logprobs


def packed(max_tokens: int = 99):
    sequences = small_sequences()
    return pack(sequences, [1.0] * len(sequences), max_tokens=max_tokens)


def test_flops_are_those_of_the_products():
    """PyTorch counts what is computed: a padded, full rectangle of attention, and the logits twice."""
    (batch,) = packed()
    model = small_model()
    with FlopCounterMode(display=False) as counter:
        token_logprobs(model, batch)[0].sum().backward()
    attention = 6 * SHAPE.num_layers * SHAPE.num_heads * SHAPE.head_dim
    squares = batch.starts_S1.diff().square().sum().item()
    logits = 2 * SHAPE.vocab_size * SHAPE.hidden_size * batch.targets_M.numel()
    vectors = sum(weight.numel() for weight in model.parameters() if weight.ndim == 1)
    products = count_flops(SHAPE, batch) - attention * squares - 6 * vectors * batch.ids_T.numel()
    counted = sum(
        count for name, count in counter.get_flop_counts()["Global"].items() if "attention" not in str(name)
    )
    # what enters the model has no gradient, so nothing is spent on that of its embedding
    assert products + logits == pytest.approx(counted, rel=0.02)


def test_padding_of_a_cpu_is_not_useful():
    batches = packed(14)
    lengths = [batch.starts_S1.diff().tolist() for batch in batches]
    places = sum(len(of_one) * max(of_one) for of_one in lengths)
    assert useful_share(batches) == sum(map(sum, lengths)) / places < 1
    assert useful_share(packed(14)[:1]) == 1.0  # one sequence alone


def test_a_shared_prompt_is_computed_once_and_seen_by_all():
    prompt = [1, 2, 3, 4]
    sequences = [TrainSequence(ids=prompt + [5] * n, loss_mask=[0] * 4 + [1] * n) for n in (2, 3)]
    (batch,) = pack(sequences, [1.0, 1.0], max_tokens=99, share=True)
    assert count_pairs(batch) == (16 + 4 + 9) / 2 + 4 * (2 + 3)
    assert useful_share([batch]) == 9 / (4 + 2 * 3)


def test_updates_are_described():
    batches = packed(20)
    found = describe_updates([batches, batches], SHAPE, 20)
    assert found["perf/update_tflop"] == pytest.approx(2 * sum(count_flops(SHAPE, b) for b in batches) / 1e12)
    tokens = sum(batch.ids_T.numel() for batch in batches)
    assert found["perf/micro_batch_fill"] == tokens / (20 * len(batches))


def test_a_cpu_has_no_share_of_a_peak():
    assert describe_device(torch.device("cpu"), 1.0, 2.0) == {}


@pytest.mark.parametrize(("name", "share"), [("NVIDIA H100 80GB HBM3", 0.5), ("some other card", None)])
def test_a_gpu_has_one_where_its_rate_is_known(name, share, monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3e9)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    found = describe_device(torch.device("cuda"), 989.0, 2.0)
    assert found["perf/max_memory_allocated_gb"] == 3.0
    assert found.get("perf/mfu/actor") == share
