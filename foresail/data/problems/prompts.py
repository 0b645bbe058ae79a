"""Problems with their prompts as token ids: tokenised once, by the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foresail.data.length_limit import LengthLimit
from foresail.records import Message, Problem
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class PromptedProblem:
    """A problem and the ids that a response will follow."""

    problem: Problem
    ids: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.problem.id


def encode_problems(
    problems: Sequence[Problem], tokenizer: Tokenizer, max_tokens: int
) -> list[PromptedProblem]:
    """All problems, or an error: a prompt that is too long is never cut, and ids must tell problems apart."""
    encoded = add_ids(problems, tokenizer)
    limit = LengthLimit(unit="prompts", key="the model's context of", tokens=max_tokens)
    if (too_long := limit.describe(encoded)) is not None:
        raise ValueError(f"{too_long}; leave them out, or use a model with a longer context")
    check_ids(encoded)
    return encoded


def add_ids(problems: Sequence[Problem], tokenizer: Tokenizer) -> list[PromptedProblem]:
    modes = [problem.thinking for problem in problems]
    prompts = tokenizer.encode_prompts([problem.prompt for problem in problems], modes)
    return [
        PromptedProblem(problem=problem, ids=tuple(ids))
        for problem, ids in zip(problems, prompts, strict=True)
    ]


def with_instructions(problem: Problem, text: str) -> Problem:
    """With the text as the end of the system prompt, or as all of it where there is none."""
    system, rest = problem.prompt[:1], problem.prompt[1:]
    if not system or system[0].role != "system":
        system, rest = (Message(role="system", content=""),), problem.prompt
    content = f"{system[0].content}\n\n{text}" if system[0].content else text
    return replace(problem, prompt=(replace(system[0], content=content), *rest))


def check_ids(encoded: Sequence[PromptedProblem]) -> None:
    if len({entry.problem.id for entry in encoded}) < len(encoded):
        ids = [entry.problem.id for entry in encoded]
        twice = next(identity for identity in ids if ids.count(identity) > 1)
        raise ValueError(f"two problems have the id {twice!r}; give each its own, or drop the id column")
