"""How far the engine's log-probabilities are from the trainer's on a real checkpoint, and where that comes from.

The engine answers word problems; the trainer's forward pass, packed, says how likely the same tokens were, and so
does the same model in float32. Differences are those of drawn tokens: mean, largest, and an estimate of the KL.

    python benchmarks/training/agreement.py --model checkpoints/SmolLM2-135M-Instruct
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foresail.algorithms.mismatch import mismatch
from foresail.data.packing import pack
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.engine.engine import Engine
from foresail.model import linear
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model
from foresail.model.packed import token_logprobs
from foresail.recipe.tables import parts
from foresail.records import PackedBatch, Sample, TrainSequence
from foresail.rollout.groups import GroupSpec, requests, to_sample
from foresail.tokenizer.tokenizer import Tokenizer

EXAMPLES = Path(__file__).parents[2] / "recipes" / "flagship" / "word-problem-examples.jsonl"
PROBLEMS = parts.Problems(source="word-problems:count=64,seed=1", examples=str(EXAMPLES))
SAMPLES, NEW_TOKENS, PROMPT_TOKENS = 8, 40, 288
Figures = dict[str, Any]


def main() -> None:
    options = read_options()
    device = torch.device("cuda")
    model = load_model(options.model, dtype=getattr(torch, options.dtype), device=device)
    exact = load_model(options.model, dtype=torch.float32, device=device)
    tokenizer = Tokenizer.load(options.model)
    report: Figures = {
        "model": options.model.name,
        "dtype": options.dtype,
        "device": torch.cuda.get_device_name(),
    }
    samples = draw(model, tokenizer)
    report["tokens"] = sum(sum(sample.loss_mask) for sample in samples)
    engine_M = engine_logprobs(samples, device)
    trainer_M = trainer_logprobs(model, samples, device)
    float32_M = trainer_logprobs(exact, samples, device)
    pairs = {
        "engine, trainer": (engine_M, trainer_M),
        "engine, float32": (engine_M, float32_M),
        "trainer, float32": (trainer_M, float32_M),
    }
    with engine_attention():
        pairs["engine, trainer with its attention"] = (
            engine_M,
            trainer_logprobs(model, samples, device),
        )
    for name, (one_M, other_M) in pairs.items():
        report[name] = describe(name, one_M, other_M)
    with whole_sums():
        report["whole sums"] = compare("whole sums", model, tokenizer, device)
    with linear.batch_invariant():
        report["batch invariant"] = compare("batch invariant", model, tokenizer, device, batch_invariant=True)
    print(json.dumps(report))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a checkpoint")
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16")
    return parser.parse_args()


def compare(
    name: str, model: Decoder, tokenizer: Tokenizer, device: torch.device, **mode: Any
) -> dict[str, float]:
    samples = draw(model, tokenizer, **mode)
    engine_M = engine_logprobs(samples, device)
    return describe(name, engine_M, trainer_logprobs(model, samples, device))


def draw(model: Decoder, tokenizer: Tokenizer, **mode: Any) -> list[Sample]:
    entries = encode_problems(load_problems(PROBLEMS), tokenizer, PROMPT_TOKENS)
    plan = GroupSpec(
        sampling=parts.Sampling(max_new_tokens=NEW_TOKENS),
        num_samples=SAMPLES,
        stop_ids=tokenizer.eos_ids,
        seed=0,
        step=0,
    )
    engine = Engine(model, num_pages=16_000, max_running=256, **mode)
    to_draw = [request for number, entry in enumerate(entries) for request in requests(entry, plan, number)]
    return [to_sample(completion) for completion in engine.generate(to_draw)]


def packed(samples: Sequence[Sample], device: torch.device) -> list[PackedBatch]:
    sequences = [
        TrainSequence(ids=sample.ids, loss_mask=sample.loss_mask, rollout_logprobs=sample.logprobs)
        for sample in samples
    ]
    return pack(sequences, [1.0] * len(sequences), max_tokens=16_384, device=device)


def engine_logprobs(samples: Sequence[Sample], device: torch.device) -> Tensor:
    """In the trainer's order."""
    logprobs = [batch.rollout_logprobs_M for batch in packed(samples, device)]
    return torch.cat([values_M for values_M in logprobs if values_M is not None])


@torch.no_grad()
def trainer_logprobs(model: Decoder, samples: Sequence[Sample], device: torch.device) -> Tensor:
    return torch.cat([token_logprobs(model, batch)[0] for batch in packed(samples, device)])


def describe(name: str, one_M: Tensor, other_M: Tensor) -> dict[str, float]:
    """As a run reports it of every step: the first are those that drew."""
    sums = mismatch(other_M.double(), one_M.double())
    count = len(one_M)
    figures = {
        "mean": sums["rollout/logprob_abs_diff"].item() / count,
        "max": sums["rollout/logprob_abs_diff_max"].item(),
        "kl": sums["rollout/logprob_kl"].item() / count,
    }
    print(f"{name:<36}" + ", ".join(f"{key} {value:.2e}" for key, value in figures.items()), flush=True)
    return figures


@contextmanager
def engine_attention() -> Iterator[None]:
    """The trainer attends by the engine's kernel for prompts."""
    plain = PackedAttention.attend
    PackedAttention.attend = PackedAttention.attend_as_engine  # type: ignore[method-assign]
    try:
        yield
    finally:
        PackedAttention.attend = plain  # type: ignore[method-assign]


@contextmanager
def whole_sums() -> Iterator[None]:
    """No product may add up its parts in 16 bits."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_bf16_reduced_precision_reduction, settings.allow_fp16_reduced_precision_reduction
    settings.allow_bf16_reduced_precision_reduction = settings.allow_fp16_reduced_precision_reduction = False
    try:
        yield
    finally:
        settings.allow_bf16_reduced_precision_reduction, settings.allow_fp16_reduced_precision_reduction = (
            before
        )


if __name__ == "__main__":
    main()
