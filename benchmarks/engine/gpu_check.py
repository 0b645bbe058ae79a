"""Whether the engine did the work: every token that was asked for, and the log-probabilities of a float32 model.

Speed measured on wrong values would be worth nothing, so a few rows of every load are computed again without a
cache by a copy of the model in float32. What may differ is bfloat16's rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from gpu_loads import Load
from gpu_precision import trainer_logprobs

from foresail.engine.request import Completion
from foresail.model.decoder import Decoder

NUM_ROWS, NUM_TOKENS = 4, 256  # of a load, and of a row, that are computed again
# Of a difference in log-probability: over all tokens, of one. Seen on an H200 at 1.5B: 0.02 and 0.06.
MEAN_LIMIT, LIMIT = 0.05, 0.3


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The engine's log-probabilities less the reference's."""

    tokens: int
    mean_abs: float
    max_abs: float


def float32_copy(model: Decoder) -> Decoder:
    """The reference: the same weights, and arithmetic that rounds 65,536 times finer."""
    return copy.deepcopy(model).float()


def check_tokens(load: Load, completions: Sequence[Completion]) -> None:
    """All requests are answered in full: an engine must not be fast by stopping early."""
    drawn = sorted(len(completion.ids) for completion in completions)
    assert drawn == sorted(load.lengths), (
        f"load {load.name} drew {sum(drawn)} tokens, not {sum(load.lengths)}"
    )
    assert all(len(completion.logprobs) == len(completion.ids) for completion in completions), (
        f"load {load.name}: tokens without a log-probability"
    )
    logprobs = torch.tensor([value for completion in completions for value in completion.logprobs])
    assert bool((torch.isfinite(logprobs) & (logprobs <= 0)).all()), "log-probabilities are not"


def check_logprobs(reference: Decoder, load: Load, completions: Sequence[Completion]) -> Agreement:
    """Rows from all over the load, the first and the last among them, against the reference."""
    rows = [shorten(completions[index]) for index in spread_out(len(completions), NUM_ROWS)]
    ours = torch.tensor([value for row in rows for value in row.logprobs], dtype=torch.float64)
    with torch.no_grad():
        reference_logprobs = torch.cat([trainer_logprobs(reference, [row]).double() for row in rows])
    differences = (ours - reference_logprobs).abs()
    agreement = Agreement(
        tokens=len(ours), mean_abs=float(differences.mean()), max_abs=float(differences.max())
    )
    if reference.shape.experts is not None:
        # rounding gives some tokens another expert, and they and those that look at them are off by more
        middle = float(differences.median())
        assert middle < MEAN_LIMIT, (
            f"load {load.name}: log-probabilities are off by {middle:.3f} in the median"
        )
        return agreement
    # written so that NaN fails
    assert agreement.mean_abs < MEAN_LIMIT and agreement.max_abs < LIMIT, (
        f"load {load.name}: log-probabilities of {agreement.tokens} tokens are off by {agreement.mean_abs:.3f} "
        f"in the mean and {agreement.max_abs:.3f} at worst; bfloat16's rounding explains {MEAN_LIMIT} and {LIMIT}"
    )
    return agreement


def shorten(completion: Completion) -> Completion:
    return replace(completion, ids=completion.ids[:NUM_TOKENS], logprobs=completion.logprobs[:NUM_TOKENS])


def spread_out(count: int, num_chosen: int) -> list[int]:
    """spread_out(10, 4) -> [0, 3, 6, 9]; spread_out(2, 4) -> [0, 1]."""
    chosen = min(count, num_chosen)
    return [round(place * (count - 1) / max(1, chosen - 1)) for place in range(chosen)]
