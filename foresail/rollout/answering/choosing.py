"""How likely a model is to begin its answer with each of some texts, without sampling.

choice_logprobs(model, [prompt_ids], [tokenizer.encode("A"), tokenizer.encode("B")]) -> [[-0.1, -2.4]]

Legend: M tokens of choices.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from foresail.data.packing import pack_batch, plan_batches
from foresail.model.decoder import Decoder
from foresail.model.packed import token_logprobs
from foresail.records import TrainSequence

BATCH_TOKENS = 16_384
SHARE_FROM = 0.2  # of the tokens, which packing prompts once must save to be worth its slower attention


@torch.no_grad()
def choice_logprobs(
    model: Decoder, prompts: Sequence[Sequence[int]], choices: Sequence[Sequence[int]]
) -> list[list[float]]:
    """By prompt, then by choice: the sum over the choice's tokens."""
    rows = [
        TrainSequence(ids=[*prompt, *choice], loss_mask=[0] * len(prompt) + [1] * len(choice))
        for prompt in prompts
        for choice in choices
    ]
    totals = [0.0] * len(rows)
    for segments in plan_batches(rows, max_tokens=max(BATCH_TOKENS, longest(rows)), share_from=SHARE_FROM):
        batch = pack_batch(rows, [1.0] * len(rows), segments, model.device)
        logprobs_M, _ = token_logprobs(model, batch)
        for segment, logprob in zip(batch.sequence_M.tolist(), logprobs_M.tolist(), strict=True):
            totals[segments[segment].number] += logprob
    return [totals[first : first + len(choices)] for first in range(0, len(rows), len(choices))]


def longest(rows: Sequence[TrainSequence]) -> int:
    return max(len(row.ids) for row in rows)
