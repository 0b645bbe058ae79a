"""How far engine and trainer are apart with experts: the trainer routing by itself, and by the engine's choices.

The engine draws samples and records the experts of every token. The trainer's packed pass then says how likely the
same tokens were, with its own choices and with the recorded ones. Differences are those of drawn tokens; flips are
the pairs of a token and a layer whose own experts are others than the engine's. Where the engine is in 16 bits, a
trainer with the same weights in float32 is asked as well: another arithmetic, as a foreign engine would have.

    python benchmarks/training/routing_replay.py                       # a GPU: 48 experts, 8 layers
    python benchmarks/training/routing_replay.py --tiny                # a CPU, seconds
    python benchmarks/training/routing_replay.py --model CHECKPOINT    # one with experts; prompts stay random
The last line is JSON.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foresail.algorithms.mismatch import mismatch
from foresail.data.packing import pack
from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model
from foresail.model.packed import replayed, token_logprobs
from foresail.recipe.shape.model_shape import Experts, ModelShape
from foresail.recipe.tables.parts import Sampling
from foresail.records import PackedBatch, Sample, TrainSequence
from foresail.rollout.groups import to_sample

SHAPE = ModelShape(
    family="ernie4_5_moe", vocab_size=32_000, hidden_size=1024, intermediate_size=2048, num_layers=8, num_heads=8,
    num_kv_heads=2, head_dim=128, max_context=2048,
    experts=Experts(routed=48, active=4, inner_size=512, shared=2, correction=True),
)  # fmt: skip
TINY = ModelShape(
    family="ernie4_5_moe", vocab_size=300, hidden_size=64, intermediate_size=64, num_layers=4, num_heads=4,
    num_kv_heads=2, head_dim=16, max_context=128,
    experts=Experts(routed=48, active=4, inner_size=16, shared=2, correction=True),
)  # fmt: skip


class Load(NamedTuple):
    prompts: int
    samples: int
    prompt_tokens: int
    new_tokens: int


class Compared:
    """A route that counts where the trainer's own choice is another one than the engine's; `inner` decides."""

    def __init__(self, inner: Any, known_TLA: Tensor) -> None:
        self.inner, self.known_TLA, self.others, self.pairs = inner, known_TLA, 0, 0

    def __call__(self, layer: int, experts_TA: Tensor) -> Tensor:
        engine_TA = self.known_TLA[:, layer - self.inner.first_layer].to(experts_TA.dtype)
        known_T = engine_TA[:, 0] >= 0
        other_T = (engine_TA.sort(1).values != experts_TA.sort(1).values).any(1)
        self.others += int((other_T & known_T).sum())
        self.pairs += int(known_T.sum())
        return experts_TA


def main() -> None:
    options = read_options()
    device = torch.device("cuda" if torch.cuda.is_available() and not options.tiny else "cpu")
    load = Load(4, 4, 12, 40) if options.tiny else Load(32, 8, 128, 256)
    report: dict[str, Any] = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu"}
    for name in options.dtypes:
        model = open_model(options, getattr(torch, name), device)
        samples = draw(model, load)
        report[name] = measure(f"{name} both", model, samples)
        if model.dtype != torch.float32:
            exact = copy.deepcopy(model).float()
            report[f"{name}, float32"] = measure(f"{name}, trainer float32", exact, samples)
    print(json.dumps(report))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="a checkpoint with experts; default: fresh weights")
    parser.add_argument("--tiny", action="store_true", help="a small shape on a CPU")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    return parser.parse_args()


def open_model(options: argparse.Namespace, dtype: torch.dtype, device: torch.device) -> Decoder:
    if options.model is not None:
        return load_model(options.model, dtype=dtype, device=device)
    return build_model(TINY if options.tiny else SHAPE, seed=0, dtype=dtype, device=device)


def measure(title: str, model: Decoder, samples: Sequence[Sample]) -> dict[str, Any]:
    """The trainer's `model` against what the engine has said of its samples."""
    batches = packed(samples, model.device)
    engine_M = torch.cat(
        [batch.rollout_logprobs_M for batch in batches if batch.rollout_logprobs_M is not None]
    )
    own_M, flips = own_logprobs(model, batches)
    with torch.no_grad():
        replayed_M = torch.cat([token_logprobs(model, b, route=replayed(model, b))[0] for b in batches])
    differences = {
        "own routing": describe(engine_M, own_M),
        "replayed routing": describe(engine_M, replayed_M),
    }
    for how, figures in differences.items():
        line = ", ".join(f"{name} {value:.2e}" for name, value in figures.items())
        print(f"{title:<28}{how:<18}{line}", flush=True)
    return {"tokens": len(engine_M), "flipped": flips, **differences}


def draw(model: Decoder, load: Load) -> list[Sample]:
    """At temperature 1, from random prompts."""
    numbers, sampling = random.Random(0), Sampling(max_new_tokens=load.new_tokens)
    prompts = [
        tuple(numbers.randrange(model.shape.vocab_size) for _ in range(load.prompt_tokens))
        for _ in range(load.prompts)
    ]
    requests = [
        Request(id=f"{place}.{n}", prompt=prompt, key=noise_key(0, 0, str(place), n), sampling=sampling)
        for place, prompt in enumerate(prompts)
        for n in range(load.samples)
    ]
    pages = len(requests) * (-(-(load.prompt_tokens + load.new_tokens) // 16) + 1)
    engine = Engine(model, num_pages=pages, max_running=len(requests), replay_routing=True)
    with engine.at_work():
        return [to_sample(completion) for completion in engine.generate(requests)]


def packed(samples: Sequence[Sample], device: torch.device) -> list[PackedBatch]:
    sequences = [
        TrainSequence(
            ids=sample.ids, loss_mask=sample.loss_mask, rollout_logprobs=sample.logprobs, side=sample.side
        )
        for sample in samples
    ]
    return pack(sequences, [1.0] * len(sequences), max_tokens=16_384, device=device, share_from=0.1)


@torch.no_grad()
def own_logprobs(model: Decoder, batches: Sequence[PackedBatch]) -> tuple[Tensor, float]:
    """By the trainer's own choices, and the share of them that are not the engine's."""
    logprobs, others, pairs = [], 0, 0
    for batch in batches:
        recorded: Any = replayed(model, batch)
        route = Compared(recorded, recorded.experts_TLA)
        logprobs.append(token_logprobs(model, batch, route=route)[0])
        others, pairs = others + route.others, pairs + route.pairs
    return torch.cat(logprobs), others / pairs


def describe(engine_M: Tensor, trainer_M: Tensor) -> dict[str, float]:
    """As a run reports it of every step."""
    sums, count = mismatch(trainer_M.double(), engine_M.double()), len(engine_M)
    return {
        "mean": sums["rollout/logprob_abs_diff"].item() / count,
        "max": sums["rollout/logprob_abs_diff_max"].item(),
        "kl": sums["rollout/logprob_kl"].item() / count,
    }


if __name__ == "__main__":
    main()
