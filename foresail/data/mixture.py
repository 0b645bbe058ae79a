"""The problems of a recipe's sources, one source after the other, each problem with its source's name.

Prompts that are too long are an error, or dropped and counted, as each source says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foresail.data.problems import load_problems
from foresail.data.prompts import PromptedProblem, add_ids, check_ids, refuse_long
from foresail.recipe.parts import Problems
from foresail.records import Problem
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """What there is to draw from; `dropped` has, by source, how many prompts were too long."""

    problems: list[PromptedProblem]
    dropped: dict[str, int] = field(default_factory=dict)


def load_mixture(sources: Sequence[Problems], tokenizer: Tokenizer, max_tokens: int) -> Mixture:
    loaded = tell_apart([name_problems(load_problems(source), source.label) for source in sources])
    kept: list[PromptedProblem] = []
    dropped: dict[str, int] = {}
    for source, problems in zip(sources, loaded, strict=True):
        encoded = add_ids(problems, tokenizer)
        if source.too_long == "error":
            refuse_long(encoded, max_tokens)
        fitting = [entry for entry in encoded if len(entry.ids) <= max_tokens]
        if not fitting:
            raise ValueError(
                f"all {len(encoded)} prompts of {source.source} are longer than {max_tokens} tokens; raise "
                "max_prompt_tokens"
            )
        if len(fitting) < len(encoded):
            dropped[source.label] = len(encoded) - len(fitting)
        kept += fitting
    check_ids(kept)
    return Mixture(problems=kept, dropped=dropped)


def name_problems(problems: Sequence[Problem], name: str) -> list[Problem]:
    return [replace(problem, dataset=name) for problem in problems]


def tell_apart(sources: Sequence[Sequence[Problem]]) -> list[list[Problem]]:
    """Ids that occur in two sources get their source's name before them: "7" -> "gsm8k:7". All others stay."""
    found = Counter(identity for problems in sources for identity in {problem.id for problem in problems})
    return [
        [
            replace(problem, id=f"{problem.dataset}:{problem.id}") if found[problem.id] > 1 else problem
            for problem in problems
        ]
        for problems in sources
    ]


def describe_dropped(dropped: dict[str, int], limit: str) -> str:
    """describe_dropped({"gsm8k": 3}, "max_prompt_tokens 64") -> "dropped as longer than …: 3 of gsm8k"."""
    counts = ", ".join(f"{count:,} of {name}" for name, count in dropped.items())
    return f"dropped as longer than {limit}: {counts}"
