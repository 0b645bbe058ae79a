"""What a step that asks a model may cost: known before it asks, from what comes to it.

describe_cost(Cost(requests=1200, prompt_characters=4_100_000, answer_tokens=1_228_800))
-> "at most 1,200 requests, about 4.1 M characters of prompts (…), at most 1.2 M tokens of answers"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PER_TOKEN = 4  # characters of English


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Upper bounds; characters without what frames a text in a question."""

    requests: int
    prompt_characters: int
    answer_tokens: int


def describe_cost(cost: Cost) -> str:
    tokens = cost.prompt_characters // PER_TOKEN
    return (
        f"at most {cost.requests:,} requests, about {short(cost.prompt_characters)} characters of prompts "
        f"({short(tokens)} tokens of English), at most {short(cost.answer_tokens)} tokens of answers"
    )


def short(number: int) -> str:
    """short(4_100_000) -> "4.1 M"."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M")):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number:,}"


def describe_costs(costs: Mapping[str, Cost]) -> str:
    """describe_costs({"3 judge": …}) -> "3 judge: at most …"."""
    return "\n".join(f"{label}: {describe_cost(cost)}" for label, cost in costs.items())
