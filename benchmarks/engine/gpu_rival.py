"""vLLM's figures on the loads of `gpu_loads.py`: those on record, each with its date and setting, and fresh ones.

`engine_gpu.py --vllm` measures fresh ones where vLLM is installed. It has a process of its own: both engines want
the card's memory for themselves.

    python benchmarks/engine/gpu_rival.py --shape 7B --loads a c --output figures.json
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

from gpu_loads import LOADS, WARM_UP_TOKENS, Load, draw_requests
from shapes import SHAPES

from foresail.recipe.shape.hf_config import config_from_shape
from foresail.recipe.shape.model_shape import ModelShape

USUAL = {"max_cudagraph_capture_size": 1024}  # at 1,024 rows it is slower with its own default
MAX_LENGTH = 4096


@dataclass(frozen=True, kw_only=True)
class RivalFigure:
    """The best of the rival's runs: tokens drawn per second, for load (f) tokens read."""

    tokens_per_second: float
    logprobs: bool  # whether it also gave the log-probability of every drawn token
    engine: str
    date: str
    machine: str
    setting: str


Figures = dict[str, dict[bool, RivalFigure]]  # by load, then without and with log-probabilities

ASKED = "random weights, bf16, prefix caching, max_model_len 4096, temperature 1, no detokenizing"
# Without and with log-probabilities.
SPEEDS: dict[str, dict[str, tuple[float, float]]] = {
    "1.5B": {
        "a": (22_601, 13_702),
        "b": (44_474, 27_114),
        "c": (51_323, 26_328),
        "d": (17_133, 12_690),
        "e": (477, 442),
        "f": (197_164, 189_925),
    },
    "7B": {
        "a": (10_628, 10_312),
        "b": (21_385, 19_760),
        "c": (26_254, 22_726),
        "d": (8_319, 8_056),
        "e": (207.5, 201.8),
        "f": (46_172, 45_993),
    },
}


def on_record(shape: str, load: str, logprobs: bool) -> RivalFigure:
    capture = "1,024" if (shape, load) == ("7B", "c") else "not noted"
    return RivalFigure(
        tokens_per_second=SPEEDS[shape][load][logprobs],
        logprobs=logprobs,
        engine="vLLM 0.26.0",
        date="2026-11-16",
        machine="one H200, torch 2.11 with CUDA 13.0",
        setting=f"{ASKED}; best of its runs, capture size {capture}",
    )


STORED: dict[str, Figures] = {
    shape: {
        load: {logprobs: on_record(shape, load, logprobs) for logprobs in (False, True)} for load in loads
    }
    for shape, loads in SPEEDS.items()
}


# Fresh figures.


def measure_rival(shape: str, loads: Sequence[str], *, rounds: int, settings: dict[str, Any]) -> Figures:
    """vLLM in a process of its own, which is gone with its memory when this returns."""
    if importlib.util.find_spec("vllm") is None:
        raise ModuleNotFoundError(
            "vllm is not installed for this Python; leave out --vllm, and the figures on record are taken"
        )
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        command = [sys.executable, __file__, "--shape", shape, "--loads", *loads, "--rounds", str(rounds)]
        subprocess.run([*command, "--settings", json.dumps(settings), "--output", str(output)], check=True)
        figures = [(load, RivalFigure(**figure)) for load, figure in json.loads(output.read_text())]
    return {name: {figure.logprobs: figure for load, figure in figures if load == name} for name in loads}


def run_loads(
    shape: ModelShape, loads: Sequence[Load], *, rounds: int, settings: dict[str, Any]
) -> list[tuple[str, RivalFigure]]:
    """Every load without and with log-probabilities, each warmed up by its own beginning as ours is."""
    import torch

    vllm = importlib.import_module("vllm")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config_from_shape(shape, dtype="bfloat16")))
        engine = vllm.LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=MAX_LENGTH,
            enable_prefix_caching=True,
            seed=0,
            **settings,
        )
    figures = []
    for load in loads:
        short = replace(load, lengths=tuple(min(length, WARM_UP_TOKENS) for length in load.lengths))
        for logprobs in (False, True):
            seconds = [
                generate(engine, draw, shape.vocab_size, number, logprobs=logprobs)
                for number, draw in enumerate([short, *[load] * rounds])
            ][1:]
            figure = RivalFigure(
                tokens_per_second=load.tokens / min(seconds),
                logprobs=logprobs,
                engine=f"vLLM {vllm.__version__}",
                date=datetime.now(UTC).date().isoformat(),
                machine=f"{torch.cuda.get_device_name()}, torch {torch.__version__}",
                setting=f"{ASKED}; best of {rounds} rounds, {json.dumps(settings)}",
            )
            print(f"  ({load.name}) {figure.tokens_per_second:>9,.0f} tok/s, logprobs {logprobs}", flush=True)
            figures.append((load.name, figure))
    return figures


def generate(engine: Any, load: Load, vocab_size: int, number: int, *, logprobs: bool) -> float:
    """Wall seconds of the whole call; every row must have the tokens, and the values, that were asked for."""
    SamplingParams = importlib.import_module("vllm").SamplingParams
    requests = draw_requests(load, vocab_size, number)
    prompts = [{"prompt_token_ids": list(request.prompt)} for request in requests]
    sampling = [
        SamplingParams(
            temperature=1.0,
            max_tokens=length,
            ignore_eos=True,
            logprobs=0 if logprobs else None,
            detokenize=False,
        )
        for length in load.lengths
    ]
    start = time.perf_counter()
    outputs = engine.generate(prompts, sampling, use_tqdm=False)
    seconds = time.perf_counter() - start
    answers = [output.outputs[0] for output in outputs]
    assert [len(answer.token_ids) for answer in answers] == list(load.lengths), "vLLM stopped early"
    assert not logprobs or all(len(answer.logprobs) == len(answer.token_ids) for answer in answers)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=list(SHAPES), required=True)
    parser.add_argument("--loads", nargs="+", choices=list(LOADS), default=list(LOADS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--settings", type=json.loads, default=USUAL, help="for vllm.LLM, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    figures = run_loads(
        SHAPES[options.shape],
        [LOADS[name] for name in options.loads],
        rounds=options.rounds,
        settings=options.settings,
    )
    options.output.write_text(json.dumps([(load, asdict(figure)) for load, figure in figures]))


if __name__ == "__main__":
    main()
