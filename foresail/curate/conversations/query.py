"""What a conversation asks, and what it answers: the query is all before the last answer, with the tools.

    query_of({"messages": [user("What is 2²?"), assistant("4")]}) -> Query(asked='["", ["user", "what is 2^2?"]]',
                                                                           answered='["4"]')

Two queries are one if they differ in layout, case and the way in which Unicode writes a sign alone. Folding for
leaked benchmarks (`decontaminate/folding.py`) goes further: to it 2+3 is 2-3, and Thai has no tones.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from foresail.curate.decontaminate.folding import APOSTROPHES
from foresail.curate.rows.conversation import message_texts
from foresail.curate.rows.row import MESSAGES

QUOTES = "“”„‟«»″＂"


class Query(NamedTuple):
    asked: str
    answered: str


def query_of(row: Mapping[str, Any]) -> Query:
    """What follows the last answer belongs to neither."""
    messages = row[MESSAGES]
    last = last_answer(messages)
    tools = json.dumps(row["tools"], sort_keys=True) if row.get("tools") else ""
    turns = [[one["role"], *map(same_wording, message_texts(one))] for one in messages[:last]]
    return Query(
        asked=json.dumps([same_wording(tools), *turns]),
        answered=json.dumps([*map(same_wording, message_texts(messages[last]))]),
    )


def answer_text(row: Mapping[str, Any]) -> str:
    """Of the last message of the assistant, with its calls."""
    return "\n\n".join(message_texts(row[MESSAGES][last_answer(row[MESSAGES])]))


def last_answer(messages: Sequence[Mapping[str, Any]]) -> int:
    """Every conversation has one: a row without is dropped when it is read."""
    return max(place for place, message in enumerate(messages) if message["role"] == "assistant")


def same_wording(text: str) -> str:
    """same_wording("Ｆind  x²\u200b – “now”") -> 'find x^2 - "now"'"""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(other_signs()))
    return " ".join(text.casefold().split())


@cache
def other_signs() -> dict[int, str]:
    """What NFKC leaves as it is, or, of raised digits, would join to the number before them."""
    signs = {}
    for code in (
        *range(0x80, 0x3400),
        *range(0xA640, 0xAC00),
        *range(0xF900, 0x20000),
        *range(0xE0000, 0xE0080),
    ):
        category = unicodedata.category(chr(code))
        if unicodedata.decomposition(chr(code)).startswith("<super>"):
            signs[code] = f"^{unicodedata.normalize('NFKC', chr(code))}"
        elif category == "Pd" or chr(code) == "−":
            signs[code] = "-"
        elif category == "Cf":  # signs without width
            signs[code] = ""
    quotes = dict.fromkeys(map(ord, QUOTES), '"') | dict.fromkeys(map(ord, APOSTROPHES), "'")
    return signs | {code: sign for code, sign in quotes.items() if sign != chr(code)}
