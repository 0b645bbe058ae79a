"""The text of a sample, turn by turn, for graders and logs."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from foresail.records import Sample, Trajectory, Turn

if TYPE_CHECKING:  # grading processes import this module, and need no tokenizer for it
    from foresail.tokenizer.tokenizer import Tokenizer

OPENING = 8  # tokens before a response in which a `<think>` would stand


def read_trajectory(tokenizer: Tokenizer, sample: Sample) -> Trajectory:
    """The text of every turn, each decoded on its own.

    Where the chat template opened `<think>` for the model, that belongs to the response: without it one that was
    cut off while thinking would look like a final answer. Observations keep their special tokens: these tell what
    the template wrote from what a tool said. The first is empty, since the problem has the prompt.
    """
    return Trajectory(
        turns=tuple(
            Turn(
                observation=tokenizer.decode(sample.ids[start:middle], skip_special_tokens=False)
                if start
                else "",
                response=read_response(tokenizer, sample.ids[start:middle], sample.ids[middle:end]),
                reward=reward,
            )
            for (start, middle, end), reward in zip_longest(turn_spans(sample), sample.turn_rewards)
        ),
        outcome=sample.outcome,
    )


def read_response(tokenizer: Tokenizer, before: list[int], ids: list[int]) -> str:
    text = tokenizer.decode(ids, skip_special_tokens=True)
    return "<think>" + text if opens_thinking(tokenizer, tuple(before[-OPENING:])) else text


@lru_cache(maxsize=1024)  # a template ends all prompts alike
def opens_thinking(tokenizer: Tokenizer, ids: tuple[int, ...]) -> bool:
    return tokenizer.decode(ids, skip_special_tokens=False).rstrip().endswith("<think>")


def turn_spans(sample: Sample) -> list[tuple[int, int, int]]:
    """Where each turn starts, where its response starts, and where it ends.

    loss_mask 0 0 1 1 0 1 with turns 0 0 0 0 1 1 -> [(0, 2, 4), (4, 5, 6)]; what was forced is the response's.
    """
    ends = [bisect_right(sample.turns, turn) for turn in range(sample.turns[-1] + 1)]
    return [
        (
            start,
            end - sum(sample.loss_mask[start:end]) - sum(start <= place < end for place in sample.forced),
            end,
        )
        for start, end in zip([0, *ends], ends, strict=False)
    ]
