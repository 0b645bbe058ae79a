"""Loss aggregation: token weights that turn any loss into a plain sum over tokens.

The normalisers are those of the whole update over all ranks, so micro-batches, packing, order and the number of
ranks change only rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Aggregation = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"]


def token_weights(num_tokens: Sequence[int], mode: Aggregation, max_tokens: int) -> list[float]:
    """The weight of each loss token of sequence i, for all sequences of one update: every rank has them.

    num_tokens [1, 3], max_tokens 10:
    token-mean          [1/4, 1/4]    every token counts alike (DAPO)
    seq-mean-token-mean [1/2, 1/6]    every sequence counts alike (GRPO, GSPO)
    seq-mean-token-sum  [1/2, 1/2]    long sequences count more
    constant            [1/20, 1/20]  the same, over a length no sample can change (Dr.GRPO)

    A sequence without loss tokens weighs 0 and is not counted among the sequences: masking a sample
    out is the same as never having sampled it.
    """
    num_sequences, total = sum(n > 0 for n in num_tokens), sum(num_tokens)
    match mode:
        case "token-mean":
            return [1 / total if n else 0.0 for n in num_tokens]
        case "seq-mean-token-mean":
            return [1 / (num_sequences * n) if n else 0.0 for n in num_tokens]
        case "seq-mean-token-sum":
            return [1 / num_sequences if n else 0.0 for n in num_tokens]
        case "constant":
            return [1 / (num_sequences * max_tokens) if n else 0.0 for n in num_tokens]
