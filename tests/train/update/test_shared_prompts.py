"""A prompt that is laid once teaches what it teaches laid beside every answer."""

from __future__ import annotations

import pytest
import torch
from grouped_sequences import GROUPS, grouped_sequences
from small_training import VOCABULARY, Keeper, small_model, update
from torch import Tensor

from foresail.algorithms.batch_losses import policy_loss
from foresail.data.packing import pack
from foresail.model.packed import token_logprobs
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch, TrainSequence


def by_token(batches: list[PackedBatch], values: list[Tensor]) -> list[tuple[float, ...]]:
    """(advantage, old log-probability, value) of all tokens with a loss, sorted: which token is which."""
    rows = []
    for batch, value_M in zip(batches, values, strict=True):
        assert batch.advantages_M is not None and batch.old_logprobs_M is not None
        rows += list(
            zip(batch.advantages_M.tolist(), batch.old_logprobs_M.tolist(), value_M.tolist(), strict=True)
        )
    return sorted(rows)


@pytest.mark.parametrize("room", [16, 25, 1000])
def test_log_probabilities_are_the_same(room):
    model, sequences = small_model(), grouped_sequences()
    weights = [1.0] * len(sequences)
    found = {}
    for share in (True, False):
        batches = pack(sequences, weights, max_tokens=room, share_from=0.0 if share else None)
        assert all(batch.ids_T.numel() <= room for batch in batches)
        with torch.no_grad():
            found[share] = by_token(batches, [token_logprobs(model, batch)[0] for batch in batches])
    for shared, apart in zip(found[True], found[False], strict=True):
        assert shared == pytest.approx(apart, abs=2e-5)


@pytest.mark.parametrize("kind", ["clip", "gspo"])
@pytest.mark.parametrize("room", [16, 1000])
def test_gradients_are_the_same(room, kind):
    model, sequences = small_model(), grouped_sequences()
    weights = [1 / (7 + n) for n in range(len(sequences))]
    settings = Loss(kind=kind)
    kept = []
    for share in (True, False):
        keeper = Keeper(model)
        batches = pack(sequences, weights, max_tokens=room, share_from=0.0 if share else None)
        update(model, keeper, batches, lambda l, b: policy_loss(l, b, settings))
        kept.append(keeper.kept)
    for shared, apart in zip(*kept, strict=True):
        torch.testing.assert_close(shared, apart, rtol=1e-4, atol=2e-5)


def test_a_prompt_is_laid_once():
    sequences = grouped_sequences()
    (batch,) = pack(sequences, [1.0] * len(sequences), max_tokens=1000, share_from=0.0)
    assert batch.ids_T.numel() == sum(prompt + sum(answers) for prompt, answers in GROUPS)
    assert sorted(batch.names) == sorted(sequence.name for sequence in sequences)
    assert batch.parents_S is not None
    alone = [len(answers) == 1 for _, answers in GROUPS]
    assert (batch.parents_S >= 0).sum() == sum(len(a) for _, a in GROUPS) - sum(alone)


def test_answers_do_not_see_each_other():
    model, sequences = small_model(), grouped_sequences()
    weights = [1.0] * len(sequences)

    def logprobs() -> dict[str, list[float]]:
        (batch,) = pack(sequences, weights, max_tokens=1000, share_from=0.0)
        with torch.no_grad():
            values = token_logprobs(model, batch)[0].tolist()
        assert batch.rollout_logprobs_M is not None
        found: dict[str, list[float]] = {}
        for segment, value in zip(batch.sequence_M.tolist(), values, strict=True):
            found.setdefault(str(segment), []).append(value)
        return found

    before = logprobs()
    changed = next(s for s in sequences if sum(s.loss_mask) == 5 and len(s.ids) == 12)
    changed.ids[-1] = (changed.ids[-1] + 1) % VOCABULARY  # the last token: nothing after it sees it
    after = logprobs()
    different = [name for name in before if before[name] != pytest.approx(after[name], abs=1e-6)]
    assert len(different) == 1
    assert before[different[0]][:-1] == pytest.approx(after[different[0]][:-1], abs=1e-6)


def test_more_answers_than_fit_repeat_the_prompt():
    prompt = list(range(6))
    sequences = [TrainSequence(ids=[*prompt, 7, 8], loss_mask=[0] * 6 + [1, 1]) for _ in range(5)]
    batches = pack(sequences, [1.0] * 5, max_tokens=10, share_from=0.0)
    assert [batch.starts_S1.diff().tolist() for batch in batches] == [[6, 2, 2], [6, 2, 2], [8]]
    assert batches[-1].parents_S is None


@pytest.mark.parametrize(("prompt", "is_shared"), [(6, False), (20, True)])
def test_a_prompt_is_laid_once_where_that_saves_enough(prompt, is_shared):
    """Of three answers of 20 tokens, 12 of 78 are saved, or 40 of 120."""
    ids = list(range(prompt + 20))
    sequences = [TrainSequence(ids=ids, loss_mask=[0] * prompt + [1] * 20) for _ in range(3)]
    (batch,) = pack(sequences, [1.0] * 3, max_tokens=200, share_from=0.25)
    assert (batch.parents_S is not None) == is_shared
