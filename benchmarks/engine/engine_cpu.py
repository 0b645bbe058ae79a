"""Tokens per second on CPU: Foresail's engine beside transformers' `generate`, same weights, same stopping rule.

Both draw the same number of responses to the same prompts at temperature 1 and end each at a stop id or at
the limit. transformers gets every batch size asked for and its best counts, once without log-probabilities
and once with them, since reinforcement needs them; the engine always reports them. Rounds alternate between
the two sides, and the median of each counts. The last line is JSON.

    python benchmarks/engine/engine_cpu.py            # the quickstart's shape, then a larger one for information
    python benchmarks/engine/engine_cpu.py --quick    # a glance, less than a minute
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from foresail.engine.build import build_engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, save_model
from foresail.model.readouts import logits
from foresail.quickstart.reasoning import PAGE_SIZE
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables import parts

PAD, STOP_IDS = 0, (1, 2)  # random weights: each id comes about once in `vocab` tokens
PROMPT_LENGTHS = (8, 14)

Round = Callable[[int], list[int]]  # number of the round -> length of every response


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What both sides do."""

    name: str
    shape: ModelShape
    prompts: tuple[tuple[int, ...], ...]
    samples: int
    max_new_tokens: int


@dataclass(frozen=True, kw_only=True)
class Speed:
    """The median over the rounds, and the tokens generated, so that stopping early is no advantage."""

    side: str
    tokens_per_second: float
    slowest: float
    fastest: float
    tokens_per_round: float
    tokens_per_response: float


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    machine = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    results = [measure(workload, options) for workload in workloads(options)]
    print(json.dumps({**machine, "results": results}))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, default=64, help="width of the quickstart's model")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=28)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--samples", type=int, default=16, help="responses per prompt")
    parser.add_argument("--max-new-tokens", type=int, default=48)
    parser.add_argument("--page-size", type=int, default=PAGE_SIZE, help="tokens per KV page")
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[512, 256, 128, 64], help="transformers' batches"
    )
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds of each side")
    parser.add_argument("--threads", type=int, default=1, help="for both sides; the quickstart uses 1")
    parser.add_argument("--no-larger", action="store_true", help="leave out the larger shape")
    parser.add_argument("--quick", action="store_true", help="3 rounds, two batch sizes, no larger shape")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.batches, options.no_larger = 3, options.batches[:2], True
    return options


def workloads(options: argparse.Namespace) -> list[Workload]:
    def build(
        name: str, hidden: int, layers: int, heads: int, kv_heads: int, mlp: int, prompts: int
    ) -> Workload:
        numbers = random.Random(0)
        shape = ModelShape(
            family="qwen3",
            qk_norm=True,
            vocab_size=options.vocab,
            hidden_size=hidden,
            intermediate_size=mlp,
            num_layers=layers,
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=hidden // heads,
            max_context=PROMPT_LENGTHS[1] + options.max_new_tokens,
        )
        drawn = tuple(
            tuple(numbers.randrange(3, options.vocab) for _ in range(numbers.randint(*PROMPT_LENGTHS)))
            for _ in range(prompts)
        )
        return Workload(
            name=name,
            shape=shape,
            prompts=drawn,
            samples=options.samples,
            max_new_tokens=options.max_new_tokens,
        )

    hidden, heads = options.hidden, options.heads
    small = build("quickstart", hidden, options.layers, heads, heads // 2, 2 * hidden, options.prompts)
    larger = build("larger", 576, 4, 9, 3, 1536, max(options.prompts // 4, 1))
    return [small] if options.no_larger else [small, larger]


def measure(workload: Workload, options: argparse.Namespace) -> dict[str, Any]:
    """Time all sides in turn, print their lines, and return the figures."""
    shape, count = workload.shape, len(workload.prompts) * workload.samples
    print(
        f"\n{workload.name}: hidden {shape.hidden_size}, {shape.num_layers} layers, {shape.num_parameters:,} "
        f"parameters; {len(workload.prompts)} prompts x {workload.samples} samples, at most "
        f"{workload.max_new_tokens} tokens each"
    )
    model = build_model(shape, seed=0).requires_grad_(False)
    peer = load_in_transformers(model)
    check_same_logits(model, peer, workload.prompts[0])

    sides: dict[str, Round] = {"foresail": foresail_round(model, workload, options.page_size)}
    for batch in sorted({min(batch, count) for batch in options.batches}, reverse=True):
        sides[f"transformers, batch {batch}"] = peer_round(peer, workload, batch, with_logprobs=False)
        sides[f"transformers, batch {batch}, logprobs"] = peer_round(
            peer, workload, batch, with_logprobs=True
        )
    speeds = [summarise(side, rounds) for side, rounds in time_in_turn(sides, options.rounds).items()]
    for speed in speeds:
        print(
            f"  {speed.side:<38}{speed.tokens_per_second:>9,.0f} tokens/s  "
            f"({speed.slowest:,.0f} to {speed.fastest:,.0f}; {speed.tokens_per_response:.1f} tokens a response)"
        )

    ours, *others = speeds
    plain = best([speed for speed in others if not speed.side.endswith("logprobs")])
    with_logprobs = best([speed for speed in others if speed.side.endswith("logprobs")])
    ratio = ours.tokens_per_second / plain.tokens_per_second
    ratio_logprobs = ours.tokens_per_second / with_logprobs.tokens_per_second
    print(
        f"  foresail is {ratio:.1f}x the best of transformers, {ratio_logprobs:.1f}x with log-probabilities"
    )
    return {
        "workload": workload.name,
        "parameters": shape.num_parameters,
        "ratio": round(ratio, 2),
        "ratio_with_logprobs": round(ratio_logprobs, 2),
        "speeds": [asdict(speed) for speed in speeds],
    }


# The two sides.


def foresail_round(model: Decoder, workload: Workload, page_size: int) -> Round:
    sampling = parts.Sampling(max_new_tokens=workload.max_new_tokens)
    room = parts.Engine(page_size=page_size)
    engine = build_engine(model, room, max_length=workload.shape.max_context)

    def draw(number: int) -> list[int]:
        requests = [
            Request(
                id=f"{index}.{sample}",
                prompt=prompt,
                key=noise_key(0, number, f"{index}", sample),
                sampling=sampling,
                stop_ids=STOP_IDS,
            )
            for index, prompt in enumerate(workload.prompts)
            for sample in range(workload.samples)
        ]
        return [len(completion.ids) for completion in engine.generate(requests)]

    return draw


def peer_round(peer: Any, workload: Workload, batch: int, *, with_logprobs: bool) -> Round:
    prompts = [prompt for prompt in workload.prompts for _ in range(workload.samples)]
    batches = [left_padded(prompts[first : first + batch]) for first in range(0, len(prompts), batch)]

    def draw(number: int) -> list[int]:
        torch.manual_seed(number)
        lengths: list[int] = []
        for ids_BT, mask_BT in batches:
            output = peer.generate(
                input_ids=ids_BT,
                attention_mask=mask_BT,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                use_cache=True,
                max_new_tokens=workload.max_new_tokens,
                eos_token_id=list(STOP_IDS),
                pad_token_id=PAD,
                return_dict_in_generate=True,
                output_logits=with_logprobs,
            )
            response_BL = output.sequences[:, ids_BT.shape[1] :]
            if with_logprobs:
                logprobs_BLV = torch.stack(output.logits, dim=1).float().log_softmax(-1)
                logprobs_BLV.gather(2, response_BL[:, :, None]).squeeze(2)
            lengths += response_lengths(response_BL)
        return lengths

    return draw


def load_in_transformers(model: Decoder) -> Any:
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        save_model(model, folder)
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@torch.inference_mode()
def check_same_logits(model: Decoder, peer: Any, prompt: tuple[int, ...]) -> None:
    """A comparison of speeds is worth something only between equal models."""
    ids_T = torch.tensor(prompt)
    attend = PackedAttention(torch.tensor([0, len(prompt)]))
    ours = model(ids_T, torch.arange(len(prompt)), attend, logits).value
    torch.testing.assert_close(ours, peer(ids_T[None]).logits[0], rtol=0, atol=1e-4)


def left_padded(prompts: list[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    ids_BT = torch.tensor([[PAD] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask_BT = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return ids_BT, mask_BT


def response_lengths(response_BL: Tensor) -> list[int]:
    """Up to the first stop id, which counts; the padding after it does not."""
    stopped_BL = torch.isin(response_BL, torch.tensor(STOP_IDS))
    before_BL = stopped_BL.cumsum(1) - stopped_BL.long()
    return (before_BL == 0).sum(1).tolist()


# The clock.


def time_in_turn(sides: dict[str, Round], rounds: int) -> dict[str, list[tuple[list[int], float]]]:
    """Lengths and seconds of every round; sides alternate, so a busy moment of the machine hits all of them."""
    timed: dict[str, list[tuple[list[int], float]]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side, draw in sides.items():
            start = time.perf_counter()
            lengths = draw(number)
            timed[side].append((lengths, time.perf_counter() - start))
    return {side: results[1:] for side, results in timed.items()}  # the first round warms up


def summarise(side: str, rounds: list[tuple[list[int], float]]) -> Speed:
    speeds = [sum(lengths) / seconds for lengths, seconds in rounds]
    tokens, responses = (sum(f(lengths) for lengths, _ in rounds) for f in (sum, len))
    return Speed(
        side=side,
        tokens_per_second=round(median(speeds), 1),
        slowest=round(min(speeds), 1),
        fastest=round(max(speeds), 1),
        tokens_per_round=tokens / len(rounds),
        tokens_per_response=round(tokens / responses, 2),
    )


def best(speeds: list[Speed]) -> Speed:
    return max(speeds, key=lambda speed: speed.tokens_per_second)


if __name__ == "__main__":
    main()
