"""Answers for keys of other trainers: the notation of this folder's tables, and their lookup.

    "max_completion_length": "sampling.max_new_tokens"             one word: our key of the same meaning
    "warmup_ratio": "`optimizer.warmup` counts updates: …"         a sentence; our keys stand between backticks
    "beta": ("loss.kl_weight", "loss.beta")                        the first one whose keys the stage has
    "loss_type": (…, only_in("sft", "the loss is the mean …"))     a sentence of some stages alone

Keys of the tables are names as they are spelled elsewhere:

    "num_generations"       alone or in any table: num_generations, grpo.num_generations
    ".n"                    alone
    "critic.optim.lr"       in that table, which may lie in others
    "fsdp_config.*"         all that lies in that table and has no row of its own
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

OURS = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class OnlyIn:
    stages: tuple[str, ...]
    text: str


Answer = str | OnlyIn
Answers = tuple[Answer, ...]
Row = Answer | Answers
Table = dict[str, Row]


def same(names: str, row: Row) -> Table:
    """same("max_steps num_rollout", "steps"): one row under several names."""
    return dict.fromkeys(names.split(), row)


def only_in(stages: str, text: str) -> OnlyIn:
    """only_in("sft dpo", "…")"""
    return OnlyIn(tuple(stages.split()), text)


def keys_in(text: str) -> tuple[str, ...]:
    """keys_in("steps") -> ("steps",); keys_in("set `steps` to …") -> ("steps",)."""
    return tuple(OURS.findall(text)) if " " in text else (text,)


def choose(row: Row, stage: str, known: Collection[str]) -> str | None:
    """The first answer that holds for the stage: it has all keys that the answer names."""
    for answer in row if isinstance(row, tuple) else (row,):
        if isinstance(answer, OnlyIn) and stage not in answer.stages:
            continue
        text = answer.text if isinstance(answer, OnlyIn) else answer
        if all(key in known for key in keys_in(text)):
            return text
    return None


def plain(text: str) -> str:
    """The text for users, without the backticks."""
    return text.replace("`", "")
