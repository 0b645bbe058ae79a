"""Evaluating a checkpoint on a set of problems, with every attempt kept on disk.

    foresail eval CHECKPOINT --data FILE

writes records.jsonl (one line per problem, all attempts with their texts) and summary.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foresail.data.problems import load_problems
from foresail.data.prompts import PromptedProblem, encode_problems
from foresail.engine.engine import build_engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.evaluate.results import ProblemResult, summarise
from foresail.evaluate.run import evaluate, judge_with
from foresail.model.decoder import Decoder
from foresail.model.device import choose_device, choose_dtype, choose_threads
from foresail.model.hf import check_vocabulary, load_model
from foresail.recipe import parts
from foresail.records import Message
from foresail.rewards.grader import GRADERS
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer


def evaluate_checkpoint(
    checkpoint: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    num_samples: int,
    output: Path,
    grader: str = "math",
    seed: int = 0,
    device: str = "auto",
    dtype: str = "auto",
) -> list[ProblemResult]:
    """One greedy attempt and `num_samples` samples per problem; records and summary go to `output`."""
    if grader not in GRADERS:
        raise ValueError(f"unknown grader {grader!r}; use one of {', '.join(GRADERS)}")
    model, tokenizer = open_checkpoint(
        checkpoint, device=device, dtype=dtype, max_length=sampling.max_new_tokens
    )
    prompted = encode_problems(load_problems(problems), tokenizer, model.shape.max_context)
    check_context(longest(prompted), sampling.max_new_tokens, model.shape.max_context)
    make_folder(output)  # before hours of work, not after
    room = parts.Engine(max_running=min(parts.Engine().max_running, len(prompted) * max(1, num_samples)))
    results = evaluate(
        build_engine(model, room, max_length=longest(prompted) + sampling.max_new_tokens),
        prompted,
        judge_with(tokenizer, grader),
        sampling=sampling,
        num_samples=num_samples,
        stop_ids=tokenizer.eos_ids,
        seed=seed,
    )
    settings = {"checkpoint": str(checkpoint), "grader": grader, "seed": seed}
    settings |= {"data": problems.model_dump(), "sampling": sampling.model_dump()}
    write_results(output, results, settings)
    return results


def open_checkpoint(
    checkpoint: Path, *, device: str, dtype: str = "auto", max_length: int
) -> tuple[Decoder, Tokenizer]:
    """`max_length`: what a model with a sliding window must at least see; it then counts as its context."""
    place = choose_device(device)
    model = load_model(checkpoint, dtype=choose_dtype(dtype, place), device=place, context=max_length)
    tokenizer = Tokenizer.load(checkpoint)
    check_vocabulary(model.shape, tokenizer.vocab_size)
    choose_threads(model.shape.num_parameters)
    return model, tokenizer


def longest(problems: Sequence[PromptedProblem]) -> int:
    return max(len(entry.ids) for entry in problems)


def check_context(prompt: int, response: int, context: int) -> None:
    if prompt + response <= context:
        return
    left = context - prompt
    mend = f"set max_new_tokens to {left} or less" if left > 0 else "leave such problems out"
    raise ValueError(
        f"the longest prompt has {prompt} tokens; with max_new_tokens {response} that is more than the model's "
        f"context of {context}; {mend}"
    )


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made: {error.strerror}; choose another output folder") from error


def write_results(folder: Path, results: Sequence[ProblemResult], settings: Mapping[str, Any]) -> None:
    write_text(
        folder / "records.jsonl",
        "".join(json.dumps(asdict(result), ensure_ascii=False) + "\n" for result in results),
    )
    summary = {**settings, **summarise(results)}
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def default_output(checkpoint: Path, source: str) -> Path:
    """default_output("runs/demo/rl/checkpoints/step_30", "data/test.jsonl") -> runs/eval/demo-rl-step_30-on-test"""
    names = [name for name in checkpoint.parts if name not in ("/", ".", "..", "runs", "checkpoints")]
    data = source if ":" in source else Path(source).name.split(".")[0]
    readable = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in data)
    return Path("runs") / "eval" / f"{'-'.join(names[-3:])}-on-{readable}"


def answer(checkpoint: Path, prompt: str, sampling: parts.Sampling, *, seed: int) -> str:
    """One response to one user message."""
    model, tokenizer = open_checkpoint(checkpoint, device="auto", max_length=sampling.max_new_tokens)
    ids = tuple(tokenizer.encode_prompt([Message(role="user", content=prompt)]))
    engine = build_engine(model, parts.Engine(max_running=1), max_length=len(ids) + sampling.max_new_tokens)
    key = noise_key(seed, 0, prompt, 0)
    request = Request(id="answer", prompt=ids, key=key, sampling=sampling, stop_ids=tokenizer.eos_ids)
    (completion,) = engine.generate([request])
    return tokenizer.decode(completion.ids, skip_special_tokens=True)
