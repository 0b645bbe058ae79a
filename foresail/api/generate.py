"""Answers of a checkpoint, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from foresail.api.result import Result

Prompt = str | Sequence[dict[str, Any]]  # what the user says, or a conversation


@overload
def generate(model: str | Path | Result, prompt: str, **settings: Any) -> str: ...
@overload
def generate(model: str | Path | Result, prompt: Sequence[Prompt], **settings: Any) -> list[str]: ...
def generate(
    model: str | Path | Result,
    prompt: str | Sequence[Prompt],
    *,
    system: str | None = None,
    seed: int = 0,
    device: str = "auto",
    max_new_tokens: int | None = None,
    temperature: float = 0.0,
    **sampling: Any,
) -> str | list[str]:
    """generate("runs/rl", "2+2?") -> "4"; of a list of prompts, a list of answers.

    A prompt is what the user says, or a conversation as a list of messages. Of a run, its recipe says how prompts
    look, how long answers are and where they stop; else an answer is as long as the context allows, 512 tokens at
    most. Other keywords are those of a recipe's [sampling].
    """
    from foresail.evaluation.answers import AnsweringModel
    from foresail.evaluation.target import find_target

    loaded = AnsweringModel(
        find_target(model.run if isinstance(model, Result) else Path(model)),
        system=system,
        max_new_tokens=max_new_tokens,
        sampling={"temperature": temperature, **sampling},
        seed=seed,
        device=device,
    )
    answers = loaded.answer([prompt] if isinstance(prompt, str) else prompt)
    return answers[0] if isinstance(prompt, str) else answers
