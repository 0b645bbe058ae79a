"""`foresail generate`: an answer from a checkpoint, or a conversation with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.commands.options import OneMode, Seed, Stop, System, ThinkingBudget


def generate(
    checkpoint: Annotated[Path, typer.Argument(help="folder of a run, or a Hugging Face directory")],
    prompt: Annotated[
        str | None, typer.Argument(help="what the user says; without it, a conversation")
    ] = None,
    system: System = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy")] = 0.0,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="default: the run's, else what the context leaves, at most 512")
    ] = None,
    stop: Stop = None,
    thinking: OneMode = None,
    thinking_budget: ThinkingBudget = None,
    seed: Seed = 0,
) -> None:
    """One answer from a checkpoint, or a conversation with it. Of a run, its recipe says how prompts look."""
    from foresail.evaluation.answers import AnsweringModel
    from foresail.evaluation.target import find_target

    sampling = {"temperature": temperature, "thinking_budget": thinking_budget}
    model = AnsweringModel(
        find_target(checkpoint),
        system=system,
        max_new_tokens=max_new_tokens,
        sampling=sampling | ({"stop": stop} if stop else {}),
        thinking=None if thinking is None else thinking == "on",
        seed=seed,
    )
    if prompt is not None:
        print(*model.answer([prompt]))
    else:
        model.converse()
