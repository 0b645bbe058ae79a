"""FLOPs and shares of an update, against counts by hand and PyTorch's own counter."""

from __future__ import annotations

import pytest
import torch
from small_training import SHAPE, small_model, small_sequences
from torch.utils.flop_counter import FlopCounterMode

from foresail.data.packing import pack
from foresail.model.packed import token_logprobs
from foresail.records import TrainSequence
from foresail.train.update.flops import (
    PeakMemory,
    count_flops,
    count_pairs,
    pace_metrics,
    update_metrics,
    useful_share,
)


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
    (batch,) = pack(sequences, [1.0, 1.0], max_tokens=99, share_from=0.0)
    assert count_pairs(batch) == (16 + 4 + 9) / 2 + 4 * (2 + 3)
    assert useful_share([batch]) == 9 / (4 + 2 * 3)


def test_updates_are_described():
    batches = packed(20)
    found = update_metrics([batches, batches], SHAPE, micro_batch_tokens=20, frozen=False)
    assert found["perf/update_tflop"] == pytest.approx(2 * sum(count_flops(SHAPE, b) for b in batches) / 1e12)
    tokens = sum(batch.ids_T.numel() for batch in batches)
    assert found["perf/micro_batch_fill"] == tokens / (20 * len(batches))


def test_frozen_weights_take_a_third_less():
    (batch,) = packed(999)
    attention = 12 * SHAPE.num_layers * SHAPE.num_heads * SHAPE.head_dim * count_pairs(batch)
    full, frozen = (count_flops(SHAPE, batch, frozen=frozen) - attention for frozen in (False, True))
    assert frozen == pytest.approx(full * 2 / 3)


def test_a_cpu_has_no_share_of_a_peak():
    cpu = torch.device("cpu")
    assert pace_metrics(cpu, 1.0, 2.0) == PeakMemory(cpu).metrics() == {}


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("NVIDIA H100 80GB HBM3", 0.5),
        ("NVIDIA A100-SXM4-80GB", 989 / 2 / 312),
        ("NVIDIA L40", None),
        ("x", None),
    ],
)
def test_a_gpu_has_one_where_its_rate_is_known(name, share, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert pace_metrics(torch.device("cuda"), 989.0, 2.0).get("perf/mfu/actor") == share


def test_the_caches_own_memory_counts_while_it_is_held(monkeypatch):
    """A rollout with 3 GB and a cache of 4, then an update with 5, in which the cache is lent."""
    seen = iter([1e9, 3e9, 5e9, 2e9])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: next(seen))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    memory = PeakMemory(torch.device("cuda"))
    memory.note(beside=4 * 10**9)
    memory.note()
    memory.note()
    assert memory.metrics() == {"perf/max_memory_allocated_gb": 7.0}
