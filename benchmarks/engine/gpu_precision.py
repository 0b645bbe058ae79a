"""How near the engine's log-probabilities are to the trainer's, in each of its modes, and what a mode costs.

The engine draws; then the trainer's forward pass, packed and without a cache, says how likely the same tokens
were. The embedding and the head are scaled up, so that the distributions are peaked as a trained model's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from gpu_clock import timed
from gpu_loads import draw_requests, even
from torch import Tensor

from foresail.engine.engine import Engine
from foresail.engine.request import Completion
from foresail.model import linear
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.readouts import logits_at

MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "fp8_kv": {"fp8_kv": True},
    "batch_invariant": {"batch_invariant": True},
}
SHARPER = 4.0
SEQUENCES, PROMPT, NEW = 32, 128, 256
SPEED_BATCHES, SPEED_NEW = (64, 256), 96
AT_ONCE = 8  # sequences in one of the trainer's passes


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Trainer's minus engine's log-probability of the drawn tokens, and tokens per second by batch."""

    mode: str
    trainer: str
    mean_abs: float
    max_abs: float
    kl: float
    tokens_per_second: dict[int, float]


def measure_precision(model: Decoder) -> list[Precision]:
    sharpen(model)
    return [measure_mode(model, mode) for mode in MODES]


@torch.no_grad()
def sharpen(model: Decoder) -> None:
    (model.embed if model.head is None else model.head).weight.mul_(SHARPER)


def measure_mode(model: Decoder, mode: str) -> Precision:
    engine = Engine(model, num_pages=8000, max_running=max(SPEED_BATCHES), **MODES[mode])
    load = even("precision", "precision", groups=SEQUENCES, prompt=PROMPT, new=NEW)
    completions = list(engine.generate(draw_requests(load, model.shape.vocab_size, number=0)))
    speeds = {batch: measure_speed(engine, batch) for batch in SPEED_BATCHES}
    invariant = mode == "batch_invariant"
    with linear.batch_invariant(invariant):
        difference_N = compare(model, completions)
    return Precision(
        mode=mode,
        trainer="batch_invariant" if invariant else "plain",
        mean_abs=float(difference_N.abs().mean()),
        max_abs=float(difference_N.abs().max()),
        kl=float((difference_N.exp() - 1 - difference_N).mean()),
        tokens_per_second=speeds,
    )


def measure_speed(engine: Engine, batch: int) -> float:
    """Of decoding alone would be higher: prompts of 128 tokens are in it."""
    load = even("speed", "speed", groups=batch, prompt=PROMPT, new=SPEED_NEW)
    seconds = []
    for number in range(3):
        requests = draw_requests(load, engine.model.shape.vocab_size, number)
        seconds.append(timed(lambda requests=requests: list(engine.generate(requests)))[1])
    return load.tokens / median(seconds)


@torch.no_grad()
def compare(model: Decoder, completions: list[Completion]) -> Tensor:
    parts = []
    for first in range(0, len(completions), AT_ONCE):
        some = completions[first : first + AT_ONCE]
        ours = torch.tensor([value for completion in some for value in completion.logprobs])
        parts.append(trainer_logprobs(model, some).double() - ours.double())
    return torch.cat(parts)


def trainer_logprobs(model: Decoder, completions: list[Completion]) -> Tensor:
    """Log-probabilities of all drawn tokens, from one packed pass."""
    sequences = [[*completion.request.prompt, *completion.ids] for completion in completions]
    starts = torch.tensor([0, *(len(sequence) for sequence in sequences)]).cumsum(0)
    ids_T = torch.tensor([token for sequence in sequences for token in sequence], device=model.device)
    positions_T = torch.cat([torch.arange(len(sequence)) for sequence in sequences]).to(model.device)
    drawn_N = torch.cat(
        [
            torch.arange(int(start) + len(completion.request.prompt), int(start) + len(sequence))
            for start, completion, sequence in zip(starts[:-1], completions, sequences, strict=True)
        ]
    ).to(model.device)
    attend = PackedAttention(starts.to(model.device))
    logits_NV = model(ids_T, positions_T, attend, logits_at(drawn_N - 1)).value
    logprobs_NV = logits_NV.float().log_softmax(-1)
    return logprobs_NV.gather(1, ids_T[drawn_N][:, None]).squeeze(1).cpu()


def describe(precision: Precision) -> str:
    speeds = ", ".join(
        f"{speed:,.0f} tok/s at {batch}" for batch, speed in precision.tokens_per_second.items()
    )
    return (
        f"  {precision.mode:<16} against the {precision.trainer} trainer: mean {precision.mean_abs:.2e}, max "
        f"{precision.max_abs:.2e}, KL {precision.kl:.2e}; {speeds}"
    )
