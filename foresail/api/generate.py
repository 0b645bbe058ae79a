"""Answers of a checkpoint, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from foresail.api.given import newest_checkpoint
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

    A prompt is what the user says, or a conversation as a list of messages. Without `max_new_tokens` an answer is
    as long as the context allows, 512 tokens at most; other keywords are those of a recipe's [sampling].
    """
    from foresail.evaluation.answers import AnsweringModel, to_conversation

    loaded = AnsweringModel(
        model.checkpoint if isinstance(model, Result) else newest_checkpoint(Path(model)),
        max_new_tokens=max_new_tokens,
        sampling={"temperature": temperature, **sampling},
        seed=seed,
        device=device,
    )
    prompts = [prompt] if isinstance(prompt, str) else prompt
    answers = loaded.answer([to_conversation(entry, system) for entry in prompts])
    return answers[0] if isinstance(prompt, str) else answers
