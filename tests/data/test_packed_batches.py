"""Packing: nothing lost, nothing mixed, nothing too large."""

import dataclasses
import time
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.packing import pack, pack_batch, plan_batches
from foresail.records import PackedBatch, TrainSequence
from foresail.world import ContextGroup

FIELDS = ("advantages", "old_logprobs", "rollout_logprobs", "ref_logprobs")


def sequence(name: int, mask: list[int]) -> TrainSequence:
    """Values that tell sequence, token and field apart."""
    length = len(mask)
    fields = {field: [name + t / 64 + k / 8 for t in range(length)] for k, field in enumerate(FIELDS)}
    return TrainSequence(ids=[100 * name + t for t in range(length)], loss_mask=mask, **fields)


masks = st.lists(st.integers(0, 1), min_size=1, max_size=12).map(lambda mask: [0, *mask[1:]])


@settings(deadline=None)
@given(st.lists(masks, max_size=12), st.integers(12, 40))
def test_every_loss_token_arrives_once_with_what_belongs_to_it(all_masks: list[list[int]], room: int) -> None:
    sequences = [sequence(name, mask) for name, mask in enumerate(all_masks)]
    weights = [0.5 + name for name in range(len(sequences))]
    found = {}
    for batch in pack(sequences, weights, max_tokens=room):
        starts, ids = batch.starts_S1.tolist(), batch.ids_T.tolist()
        assert starts[0] == 0 and starts[-1] == len(ids) <= room
        for m, (target, s) in enumerate(
            zip(batch.targets_M.tolist(), batch.sequence_M.tolist(), strict=True)
        ):
            assert starts[s] < target < starts[s + 1]
            values = [getattr(batch, f"{field}_M")[m].item() for field in FIELDS]
            found[ids[target]] = (batch.weights_M[m].item(), *values)
        for s, (start, end) in enumerate(pairwise(starts)):
            name = ids[start] // 100
            assert ids[start:end] == sequences[name].ids
            assert batch.positions_T[start:end].tolist() == list(range(end - start))
            assert s in batch.sequence_M.tolist(), "a sequence without a loss was kept"
    expected = {
        entry.ids[t]: (weight, *(getattr(entry, field)[t] for field in FIELDS))
        for entry, weight in zip(sequences, weights, strict=True)
        for t, on in enumerate(entry.loss_mask)
        if on
    }
    assert found == expected


@settings(deadline=None)
@given(st.lists(masks, min_size=1, max_size=8), st.integers(1, 5), st.sampled_from([None, 0.0]))
def test_ranks_that_share_a_batch_have_equal_slices_and_read_every_loss_once(
    all_masks: list[list[int]], ranks: int, share_from: float | None
) -> None:
    sequences = [
        TrainSequence(ids=[7, *range(1, len(mask))], loss_mask=mask, side={"turn": [3] * len(mask)})
        for mask in all_masks
    ]
    weights = [1.0] * len(sequences)
    for plan in plan_batches(sequences, max_tokens=12 * ranks, share_from=share_from):
        alone = pack_batch(sequences, weights, plan, "cpu")
        count, read, tokens = alone.ids_T.numel(), [], []
        for rank in range(ranks):
            batch = pack_batch(sequences, weights, plan, "cpu", ContextGroup(rank, ranks, None))
            own = batch.slice
            assert own is not None and batch.ids_T.numel() <= 12 * ranks
            size = batch.ids_T.numel()
            assert own.tokens == slice(rank * size // ranks, (rank + 1) * size // ranks)
            assert 0 <= size - count < ranks == size // (own.tokens.stop - own.tokens.start)
            assert batch.starts_S1.tolist() == [*alone.starts_S1.tolist()[:-1], size]
            assert torch.equal(batch.sources_M, alone.sources_M), "padding has no loss and is nobody's source"
            assert torch.equal(batch.ids_T[:count], alone.ids_T) and batch.positions_T[count:].sum() == 0
            assert batch.side["turn"].tolist() == [3] * count + [-1] * (size - count)
            tokens += batch.ids_T[own.tokens].tolist()
            read += own.own_R.tolist()
            assert all(place in range(size)[own.tokens] for place in batch.sources_M[own.own_R].tolist())
        assert sorted(read) == [*range(alone.sources_M.numel())]
        assert tokens[:count] == alone.ids_T.tolist()


def test_batches_hold_sequences_of_like_length() -> None:
    sequences = [
        TrainSequence(ids=[i] * n, loss_mask=[0] + [1] * (n - 1)) for i, n in enumerate([3, 9, 4, 9, 3])
    ]
    batches = pack(sequences, [1.0] * 5, max_tokens=10)
    assert [batch.starts_S1.diff().tolist() for batch in batches] == [[9], [9], [4, 3, 3]]
    assert [batch.ids_T[batch.starts_S1[:-1]].tolist() for batch in batches] == [[1], [3], [2, 0, 4]]


def test_batches_and_errors_carry_names() -> None:
    short = TrainSequence(name="gsm8k:1 sample 0", ids=[1, 2], loss_mask=[0, 1])
    long = TrainSequence(name="gsm8k:2 sample 3", ids=[1, 2, 3], loss_mask=[0, 1, 1])
    (batch,) = pack([short, long], [1.0, 1.0], max_tokens=5)
    assert batch.names == ("gsm8k:2 sample 3", "gsm8k:1 sample 0")
    with pytest.raises(ValueError, match="gsm8k:2 sample 3 has 3 tokens"):
        pack([short, long], [1.0, 1.0], max_tokens=2)


def test_types_and_absent_fields() -> None:
    (batch,) = pack([TrainSequence(ids=[5, 6], loss_mask=[0, 1])], [1.0], max_tokens=2)
    kinds = {field.name: getattr(batch, field.name) for field in dataclasses.fields(PackedBatch)}
    assert {name: tensor.dtype for name, tensor in kinds.items() if isinstance(tensor, torch.Tensor)} == {
        "ids_T": torch.int64,
        "positions_T": torch.int64,
        "starts_S1": torch.int64,
        "targets_M": torch.int64,
        "sources_M": torch.int64,
        "sequence_M": torch.int64,
        "weights_M": torch.float32,
    }
    (full,) = pack([sequence(1, [0, 1])], [1.0], max_tokens=2)
    assert full.advantages_M is not None and full.advantages_M.dtype == torch.float32


@pytest.mark.parametrize("share_from", [None, 0.0])
def test_side_data_lies_beside_its_tokens(share_from: float | None) -> None:
    """Here it says the token again, once as a number and once in a row; prompts may be laid once."""
    prompt, answers = [7, 8, 9], [[1, 2], [3], [4, 5, 6]]
    sequences = [
        TrainSequence(
            ids=[*prompt, *answer],
            loss_mask=[0] * len(prompt) + [1] * len(answer),
            side={"again": [*prompt, *answer], "row": [[token, token / 2] for token in (*prompt, *answer)]},
        )
        for answer in answers
    ]
    (batch,) = pack(sequences, [1.0] * 3, max_tokens=20, share_from=share_from)
    assert len(batch.ids_T) == (15 if share_from is None else 9)
    assert torch.equal(batch.side["again"], batch.ids_T)
    assert torch.equal(batch.side["row"], torch.stack((batch.ids_T, batch.ids_T / 2), 1))
    short = dataclasses.replace(sequences[0], side={"again": [1]})
    with pytest.raises(AssertionError, match="1 again for 5 ids"):
        pack([short], [1.0], max_tokens=20)
    with pytest.raises(AssertionError, match="only some sequences have"):
        pack([sequences[0], dataclasses.replace(sequences[1], side={})], [1.0] * 2, max_tokens=20)


def test_side_data_that_no_engine_gave_is_minus_one() -> None:
    side = {"expert": [None, None, 4], "pair": [None, [1, 2], [3, 4]], "nowhere": [None] * 3}
    sequence = TrainSequence(ids=[7, 8, 1], loss_mask=[0, 0, 1], side=side)
    (batch,) = pack([sequence], [1.0], max_tokens=20)
    found = {name: values.tolist() for name, values in batch.side.items()}
    assert found == {"expert": [-1, -1, 4], "pair": [[-1, -1], [1, 2], [3, 4]], "nowhere": [-1] * 3}


def test_nothing_to_learn_gives_no_batches() -> None:
    assert pack([TrainSequence(ids=[1, 2], loss_mask=[0, 0])], [1.0], max_tokens=8) == []
    assert pack([], [], max_tokens=8) == []


def test_too_long_a_sequence_is_refused() -> None:
    with pytest.raises(
        ValueError, match="sequence 1 has 9 tokens, more than a micro-batch of 8; set micro_batch_tokens = 9"
    ):
        pack([sequence(0, [0, 1]), sequence(1, [0] + [1] * 8)], [1.0, 1.0], max_tokens=8)


def test_loss_on_a_first_token_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence 0 has a loss on its first token, which nothing predicts"):
        pack([sequence(0, [1, 1])], [1.0], max_tokens=8)


def test_our_own_mistakes_are_caught() -> None:
    with pytest.raises(AssertionError, match="2 sequences but 1 weights"):
        pack([sequence(0, [0, 1]), sequence(1, [0, 1])], [1.0], max_tokens=8)
    with pytest.raises(AssertionError, match="sequence 0: 1 loss_mask for 2 ids"):
        pack([TrainSequence(ids=[1, 2], loss_mask=[0])], [1.0], max_tokens=8)
    with pytest.raises(AssertionError, match="only some sequences have advantages"):
        pack([sequence(0, [0, 1]), TrainSequence(ids=[1, 2], loss_mask=[0, 1])], [1.0, 1.0], max_tokens=8)


def test_thousands_of_sequences_pack_in_a_blink() -> None:
    sequences = [sequence(i, [0] * 10 + [1] * 40) for i in range(4000)]
    start = time.process_time()
    pack(sequences, [1.0] * 4000, max_tokens=8192)
    assert time.process_time() - start < 5  # of CPU time; about 0.1
