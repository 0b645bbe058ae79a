"""The teacher's hint with a problem's answer, and its place in the prompt: the recipe's `credit.hint`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foresail.recipe.tables.credit import Credit
from foresail.records import Message, Problem
from foresail.tokenizer.tokenizer import Tokenizer


def hint(settings: Credit, answer: str) -> str:
    return settings.hint.replace("{answer}", answer)


def with_hint(prompt: Sequence[Message], text: str) -> list[Message]:
    """The prompt with the text after the last user message's."""
    users = [number for number, message in enumerate(prompt) if message.role == "user"]
    place = users[-1] if users else len(prompt) - 1
    hinted = replace(prompt[place], content=prompt[place].content + text)
    return [*prompt[:place], hinted, *prompt[place + 1 :]]


def check_hint(settings: Credit, problem: Problem, tokenizer: Tokenizer) -> None:
    """Before the first step: raise if the tokenizer cannot encode the hint."""
    if settings.kind not in ("pbsd", "opsd"):
        return
    try:
        tokenizer.encode_prompt(with_hint(problem.prompt, hint(settings, problem.answer)))
        if settings.student == "placebo":
            tokenizer.encode_prompt(with_hint(problem.prompt, hint(settings, settings.withheld)))
    except ValueError as error:
        raise ValueError(f"credit.hint, which tells the teacher the answer: {error}") from error
