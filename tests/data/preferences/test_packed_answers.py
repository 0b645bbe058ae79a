"""Packed pairs: both answers in one micro-batch behind one prompt, nothing lost, the same log-probabilities."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.preferences.packing import pack_answers, plan_answers
from foresail.records import TrainPair, TrainSequence

sizes = st.tuples(st.integers(1, 8), st.integers(0, 3), st.integers(1, 6), st.integers(1, 6))


def make_pair(number: int, size: tuple[int, int, int, int]) -> TrainPair:
    """A shared prompt, tokens that differ before the answers' first loss, and two answers; ids tell all apart."""
    prompt, apart, chosen, rejected = size

    def sequence(answer: int, side: int) -> TrainSequence:
        base = 1000 * number
        own = [base + 100 * side + t for t in range(apart + answer)]
        mask = [0] * (prompt + apart) + [1] * answer
        return TrainSequence(name=f"{number}/{side}", ids=[*range(base, base + prompt), *own], loss_mask=mask)

    return TrainPair(
        name=str(number),
        chosen=sequence(chosen, 1),
        rejected=sequence(rejected, 2),
        margin=float(number),
        ref_logprobs=(-float(number), -float(number) - 0.5),
    )


@settings(max_examples=60)
@given(st.lists(sizes, min_size=1, max_size=7), st.integers(40, 90), st.sampled_from([None, 0.0, 0.3]))
def test_both_answers_are_there_once_beside_each_other(
    made: list[tuple[int, int, int, int]], room: int, share_from: float | None
) -> None:
    pairs = [make_pair(number, size) for number, size in enumerate(made)]
    chosen_tokens = sum(sum(pair.chosen.loss_mask) for pair in pairs)
    seen = []
    for plan in plan_answers(pairs, max_tokens=room, share_from=share_from):
        batch = pack_answers(pairs, plan, count=len(pairs), good=chosen_tokens, device="cpu")
        assert batch.answers is not None and batch.answers.ref_logprobs_PK is not None
        assert len(batch.ids_T) <= room
        starts, ids = batch.starts_S1.tolist(), batch.ids_T.tolist()
        for row, segments in enumerate(batch.answers.segments_PK.tolist()):
            number = plan.members[row]
            seen.append(number)
            assert batch.answers.margins_P[row] == number
            assert batch.answers.ref_logprobs_PK[row].tolist() == [-number, -number - 0.5]
            assert batch.answers.weights_P[row].item() == pytest.approx(1 / len(pairs))
            for side, segment in enumerate(segments):
                sequence = (pairs[number].chosen, pairs[number].rejected)[side]
                parent = -1 if batch.parents_S is None else int(batch.parents_S[segment])
                before = ids[starts[parent] : starts[parent + 1]] if parent >= 0 else []
                assert before + ids[starts[segment] : starts[segment + 1]] == sequence.ids
                assert batch.positions_T[starts[segment]] == len(before)
                mine = batch.sequence_M == segment
                learned = [t for t, on in zip(sequence.ids, sequence.loss_mask, strict=True) if on]
                assert batch.ids_T[batch.targets_M[mine]].tolist() == learned
                predicted_from = [sequence.ids[sequence.ids.index(token) - 1] for token in learned]
                assert batch.ids_T[batch.sources_M[mine]].tolist() == predicted_from
                weight = 0.0 if side else 1 / chosen_tokens
                assert batch.weights_M[mine].tolist() == pytest.approx([weight] * len(learned))
    assert sorted(seen) == list(range(len(pairs)))


def test_a_prompt_is_packed_once_where_that_pays() -> None:
    pairs = [make_pair(0, (8, 0, 2, 3)), make_pair(1, (8, 0, 1, 1))]
    (shared,) = plan_answers(pairs, max_tokens=100, share_from=0.1)
    (apart,) = plan_answers(pairs, max_tokens=100, share_from=0.9)
    lengths = []
    for plan in (shared, apart):
        batch = pack_answers(pairs, plan, count=2, good=3, device="cpu")
        lengths.append(len(batch.ids_T))
    assert lengths == [8 + 5 + 8 + 2, 10 + 11 + 9 + 9]


def test_a_pair_that_fits_no_micro_batch_is_named() -> None:
    with pytest.raises(
        ValueError, match="0 has 30 tokens, more than a micro-batch of 20; set micro_batch_tokens"
    ):
        plan_answers([make_pair(0, (10, 0, 6, 4))], max_tokens=20, share_from=None)


def test_margins_that_are_not_given_are_zero_and_references_may_be_missing() -> None:
    pair = TrainPair(
        chosen=TrainSequence(ids=[1, 2], loss_mask=[0, 1]),
        rejected=TrainSequence(ids=[1, 3], loss_mask=[0, 1]),
    )
    (plan,) = plan_answers([pair], max_tokens=10, share_from=0.0)
    packed = pack_answers([pair], plan, count=1, good=1, device="cpu").answers
    assert packed is not None and packed.ref_logprobs_PK is None
    assert torch.equal(packed.margins_P, torch.zeros(1))
