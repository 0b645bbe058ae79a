"""Whether two tokenizers cut numbers alike.

number_warning(old, new) -> "numbers are cut differently: 20481 is 2 0 4 8 1 in the old tokenizer and 204 81 …"
"""

from __future__ import annotations

from foresail.model.transplant.token_map import encode_words
from foresail.tokenizer.tokenizer import Tokenizer

NUMBERS = ("7", "42", "365", "2048", "20481", "123456", "1234567890", "3.14159", "0.05", "1,000,000", "00")
WHY = (
    "A model computes on digits as it learned to see them, and the vector of a new piece such as 204 is made of "
    "those of its digits, which say nothing of their order. Arithmetic is lost until it is learned again; use a "
    "tokenizer that cuts numbers as the old one does, or train on numbers"
)


def number_warning(old: Tokenizer, new: Tokenizer) -> str | None:
    """The first number that differs, and why that matters; None where none does."""
    was, now = (cut_numbers(tokenizer) for tokenizer in (old, new))
    for number, before, after in zip(NUMBERS, was, now, strict=True):
        if before != after:
            return (
                f"numbers are cut differently: {number} is {show(before)} in the old tokenizer and {show(after)} "
                f"in the new one. {WHY}"
            )
    return None


def cut_numbers(tokenizer: Tokenizer) -> list[list[bytes]]:
    spelled = tokenizer.token_bytes()
    return [[spelled[number] for number in ids] for ids in encode_words(NUMBERS, tokenizer)]


def show(pieces: list[bytes]) -> str:
    return " ".join(piece.decode(errors="replace") for piece in pieces) or "nothing it can write"
