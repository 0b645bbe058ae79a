"""Evaluating a checkpoint on a set of problems, with every attempt kept on disk.

    foresail eval CHECKPOINT --data FILE

writes records.jsonl (one line per problem, all attempts with their texts) and summary.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import ValidationError

from foresail.data.mixtures.reader import Reader
from foresail.data.problems.prompts import PromptedProblem, encode_problems
from foresail.evaluation.results import ProblemResult, summarise, to_json
from foresail.evaluation.run import Examiner, evaluate
from foresail.model.decoder import Decoder
from foresail.model.device import choose_device, choose_dtype, choose_library, choose_threads
from foresail.model.hf import check_vocabulary, load_model
from foresail.recipe.estimates.machine import main_memory
from foresail.recipe.estimates.memory import pages_per_sample
from foresail.recipe.reward_function import Function, check_function, name_of
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem
from foresail.rewards.build import open_grading
from foresail.rewards.grading import Grading
from foresail.rollout.build import build_fleet
from foresail.rollout.stream import Stream, StreamKind
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer

UNKNOWN_MEMORY = 8 << 30  # bytes assumed where the system does not say


TryGrading = Callable[[Grading, Sequence[Problem], Reward, Tokenizer], None]


class EpisodeSource(Protocol):
    """What answers the model's turns (`agents.build.Episodes`, which this room does not know)."""

    @property
    def stop(self) -> tuple[str, ...]: ...

    @property
    def names_stops(self) -> bool: ...

    def reader(self, tokenizer: Tokenizer) -> Reader: ...

    def stream(self, tokenizer: Tokenizer, max_length: int) -> StreamKind: ...


def evaluate_checkpoint(
    checkpoint: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    num_samples: int,
    output: Path,
    grader: Function | Reward = "math",
    seed: int = 0,
    device: str = "auto",
    dtype: str = "auto",
    template_options: Mapping[str, Any] | None = None,
    episodes: EpisodeSource | None = None,
    prompt_tokens: int = 0,
    try_grading: TryGrading = lambda *given: None,
) -> list[ProblemResult]:
    """One greedy attempt and `num_samples` samples per problem; records and summary go to `output`.

    `prompt_tokens`: room for prompts that a program writes itself. `try_grading` may refuse a grader before it is
    needed (`check.grading.refuse_broken`, which this room does not know).
    """
    reward = grader if isinstance(grader, Reward) else choose_grader(grader)
    model, tokenizer = open_checkpoint(
        checkpoint,
        device=device,
        dtype=dtype,
        max_length=sampling.max_new_tokens,
        template_options=template_options,
    )
    reader, names_stops = Reader(tokenizer), False
    if episodes is not None:
        names_stops = episodes.names_stops
        sampling = sampling.model_copy(update={"stop": (*sampling.stop, *episodes.stop)})
        reader = episodes.reader(tokenizer)
        tokenizer = reader.tokenizer
    prompted = encode_problems(reader.load(problems), tokenizer, model.shape.max_context)
    longest_prompt = max(longest(prompted), prompt_tokens)
    check_context(longest_prompt, sampling.max_new_tokens, model.shape.max_context)
    make_folder(output)  # before hours of work, not after
    max_length = longest_prompt + sampling.max_new_tokens
    engine = choose_engine(model, max_length, num_attempts=len(prompted) * (1 + num_samples))
    with open_grading(reward, prints=output / "reward.log", device=device) as grading:
        try_grading(grading, [entry.problem for entry in prompted], reward, tokenizer)
        results = evaluate(
            build_fleet(
                model,
                engine,
                parts.Rollout(),
                max_length=max_length,
                vocabulary=tokenizer.token_bytes() if sampling.reads_text or names_stops else (),
            ),
            prompted,
            Examiner(tokenizer=tokenizer, reward=reward, grading=grading),
            sampling=sampling,
            num_samples=num_samples,
            seed=seed,
            stream=Stream if episodes is None else episodes.stream(tokenizer, max_length),
        )
    settings = {"checkpoint": str(checkpoint), "grader": name_of(reward.grader), "seed": seed}
    settings |= {"data": problems.model_dump(), "sampling": sampling.model_dump()}
    write_results(output, results, settings)
    return results


def choose_grader(grader: Function) -> Reward:
    """The settings of a grader by its name alone, or an error that says what is wrong with it."""
    try:
        reward = Reward(grader=grader)
    except ValidationError as error:
        raise ValueError(str(error.errors()[0]["ctx"]["error"])) from None
    named = reward.own_function and isinstance(grader, str)
    if named and (wrong := next(check_function("--grader", str(grader)), None)):
        raise ValueError(wrong)
    return reward


def open_checkpoint(
    checkpoint: Path,
    *,
    device: str,
    dtype: str = "auto",
    max_length: int,
    template_options: Mapping[str, Any] | None = None,
) -> tuple[Decoder, Tokenizer]:
    """`max_length`: what a model with a sliding window must at least see; it then counts as its context."""
    place = choose_device(device)
    model = load_model(
        checkpoint, dtype=choose_dtype(dtype, place), device=place, context=max_length, mtp_layers=0
    )
    tokenizer = Tokenizer.load(checkpoint, options=template_options)
    check_vocabulary(model.shape, tokenizer.vocab_size)
    choose_threads(model.shape.num_parameters)
    choose_library(model.dtype)
    return model, tokenizer


def longest(problems: Sequence[PromptedProblem]) -> int:
    return max(len(entry.ids) for entry in problems)


def check_context(prompt: int, response: int, context: int) -> None:
    if prompt + response <= context:
        return
    left = context - prompt
    mend = f"set --max-new-tokens to {left} or less" if left > 0 else "use shorter prompts"
    raise ValueError(
        f"a prompt of {prompt} tokens and --max-new-tokens {response} exceed the model's context of {context}; "
        f"{mend}"
    )


def choose_engine(model: Decoder, max_length: int, *, num_attempts: int) -> parts.Engine:
    """As many rows at once as there are attempts, as the default allows, and as memory holds at full length."""
    default = parts.Engine()
    pages = pages_per_sample(default.page_size, max_length)
    row_bytes = pages * default.page_size * model.shape.kv_values_per_token * model.dtype.itemsize
    fitting = max(1, kv_budget(model.device) // row_bytes)
    return default.model_copy(update={"max_running": min(default.max_running, num_attempts, fitting)})


def kv_budget(device: torch.device) -> int:
    """Bytes a KV cache may take: what is left serves the forward pass, and other programs."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(0.6 * free)
    return (main_memory() or UNKNOWN_MEMORY) // 2


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made: {error.strerror}; choose another output folder") from error


def write_results(folder: Path, results: Sequence[ProblemResult], settings: Mapping[str, Any]) -> None:
    write_text(
        folder / "records.jsonl",
        "".join(json.dumps(result, default=to_json, ensure_ascii=False) + "\n" for result in results),
    )
    summary = {**settings, **summarise(results)}
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def default_output(folder: str, checkpoint: Path, source: str) -> Path:
    """default_output("eval", "runs/a/rl/checkpoints/step_3", "test.jsonl") -> runs/eval/a-rl-step_3-on-test"""
    names = [name for name in checkpoint.parts if name not in ("/", ".", "..", "runs", "checkpoints")]
    data = source if ":" in source else Path(source).name.split(".")[0]
    readable = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in data)
    return Path("runs") / folder / f"{'-'.join(names[-3:])}-on-{readable}"
