"""Preference pairs for a reward model: every answer ends with the token at which it is scored.

That is the last token of the answer itself, the one that ends the assistant's turn. What a chat template writes
after it (a newline, in ChatML) is cut off: it is not there either when an engine has just generated an answer.

Legend: T tokens of a batch, S its segments, M answers, P pairs.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from foresail.records import PackedBatch, TrainPair, TrainSequence


def end_with_answers(pair: TrainPair) -> TrainPair:
    return replace(pair, chosen=end_with_answer(pair.chosen), rejected=end_with_answer(pair.rejected))


def end_with_answer(sequence: TrainSequence) -> TrainSequence:
    """ids [5, 6, 7, 8] with loss_mask [0, 1, 1, 0] -> [5, 6, 7]."""
    end = len(sequence.loss_mask) - sequence.loss_mask[::-1].index(1)
    return replace(sequence, ids=sequence.ids[:end], loss_mask=sequence.loss_mask[:end])


def read_at_ends(batch: PackedBatch) -> PackedBatch:
    """The same tokens, of which the last one of each answer counts, chosen and rejected in turn."""
    assert batch.answers is not None and batch.slice is None, "whole preference pairs are wanted"
    segments_M = batch.answers.segments_PK.flatten()
    ends_S = batch.targets_M.new_zeros(len(batch.starts_S1) - 1)
    ends_S = ends_S.scatter_reduce(0, batch.sequence_M, batch.targets_M, "amax")
    places_M, weights_P = ends_S[segments_M], batch.answers.weights_P
    return replace(
        batch,
        targets_M=places_M,
        sources_M=places_M,
        sequence_M=segments_M,
        weights_M=torch.repeat_interleave(weights_P / 2, 2),
    )
