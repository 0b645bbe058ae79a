"""Problems with their prompts as token ids: tokenised once, by the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foresail.data.length_limit import LengthLimit
from foresail.records import Problem
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
    if (told := limit.describe(encoded)) is not None:
        raise ValueError(f"{told}; leave them out, or use a model with a longer context")
    check_ids(encoded)
    return encoded


def add_ids(problems: Sequence[Problem], tokenizer: Tokenizer) -> list[PromptedProblem]:
    prompts = tokenizer.encode_prompts([problem.prompt for problem in problems])
    return [
        PromptedProblem(problem=problem, ids=tuple(ids))
        for problem, ids in zip(problems, prompts, strict=True)
    ]


def check_ids(encoded: Sequence[PromptedProblem]) -> None:
    if len({entry.problem.id for entry in encoded}) < len(encoded):
        ids = [entry.problem.id for entry in encoded]
        twice = next(identity for identity in ids if ids.count(identity) > 1)
        raise ValueError(f"two problems have the id {twice!r}; give each its own, or drop the id column")
