"""Generation from a checkpoint, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from foresail.api.keywords import Keywords, check_keywords, folder_of
from foresail.api.result import Result
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.tables.parts import Sampling

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
    words = {**sampling, "temperature": temperature, "max_new_tokens": max_new_tokens}
    (settings,) = check_keywords(
        "generate",
        Keywords(kind=Sampling, table="sampling", values=words),
        others=("system", "seed", "device"),
    )
    prompts = [prompt] if isinstance(prompt, str) else check_prompts(prompt)
    from foresail.evaluation.answers import AnsweringModel
    from foresail.evaluation.target import find_target

    loaded = AnsweringModel(
        find_target(folder_of(model)),
        system=system,
        max_new_tokens=settings.pop("max_new_tokens", None),
        sampling=settings,
        seed=seed,
        device=device,
    )
    answers = loaded.answer(prompts)
    return answers[0] if isinstance(prompt, str) else answers


def check_prompts(prompts: Any) -> Sequence[Prompt]:
    """The prompts as a list of texts and conversations, checked before a model is loaded."""
    listed = [*prompts] if isinstance(prompts, Iterable) and not isinstance(prompts, Mapping) else [prompts]
    for number, prompt in enumerate(listed, start=1):
        is_conversation = isinstance(prompt, Sequence) and all(
            isinstance(message, Mapping) for message in prompt
        )
        if not isinstance(prompt, str) and not (is_conversation and prompt):
            raise RecipeError(
                f"prompt {number} is a {type(prompt).__name__}; give text, or a conversation as a list of "
                'messages: [{"role": "user", "content": "2+2?"}]'
            )
    if not listed:
        raise RecipeError("there is no prompt; give a text, or a list with at least one")
    return listed
