"""Scores of a reward model: token ids in, one number for each sequence out, packed without padding.

    scores = score_answers(model, [prompt + answer, prompt + other], starts=[len(prompt)] * 2, max_tokens=8192)

The score is read at a sequence's last token. Sequences with one prompt share it where that saves enough. Packing
changes scores only by rounding.

Legend: T tokens of a batch, S its segments, M its sequences.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from foresail.data.packing import Segment, pack_batch, plan_batches
from foresail.model.decoder import Decoder
from foresail.model.packed import run_packed
from foresail.model.readouts import scores_at
from foresail.records import TrainSequence

SHARE_FROM = 0.2  # of the tokens, which packing prompts once must save to be worth its slower attention


@torch.no_grad()
def score_answers(
    model: Decoder, sequences: Sequence[Sequence[int]], *, starts: Sequence[int], max_tokens: int
) -> list[float]:
    """`starts[i]` is where the answer of `sequences[i]` begins, after its prompt."""
    rows = [to_row(ids, start) for ids, start in zip(sequences, starts, strict=True)]
    scores = [float("nan")] * len(rows)
    for segments in plan_batches(rows, max_tokens=max_tokens, share_from=SHARE_FROM):
        batch = pack_batch(rows, [1.0] * len(rows), segments, model.device)
        ends = ending_segments(rows, segments)
        places_M = batch.starts_S1[1:][[number for number, _ in ends]] - 1
        scores_M = run_packed(model, batch, scores_at(places_M.to(model.device))).value
        for (_, row), score in zip(ends, scores_M.tolist(), strict=True):
            scores[row] = score
    return scores


def to_row(ids: Sequence[int], start: int) -> TrainSequence:
    """A prompt is at least one token, and an answer too, for the packing; neither changes what is read."""
    start = min(max(start, 1), len(ids) - 1)
    assert start > 0, f"a sequence of {len(ids)} tokens has no prompt and answer"
    return TrainSequence(ids=[*ids], loss_mask=[0] * start + [1] * (len(ids) - start))


def ending_segments(rows: Sequence[TrainSequence], segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """The segments in which a sequence ends, each with its sequence's number; a shared prompt ends none."""
    return [
        (number, segment.number)
        for number, segment in enumerate(segments)
        if segment.end == len(rows[segment.number].ids)
    ]
