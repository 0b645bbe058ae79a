"""Ranks of tiktoken (`o200k_base.tiktoken`) as a tokenizer: a line holds a token in base 64, and its rank."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import tokenizers

from foresail.tokenizer.training.definition import write_definition

ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
# By the name of the file: the ranks do not say where a text is cut.
PATTERNS = {
    "cl100k_base": rf"{ENDINGS}|{BEFORE}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]|"
    r"\s+(?!\S)|\s+",
    "o200k_base": rf"{BEFORE}{UPPER}*{LOWER}+{ENDINGS}?|{BEFORE}{UPPER}+{LOWER}*{ENDINGS}?|\p{{N}}{{1,3}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def open_ranks(lines: Iterable[str], name: str) -> tokenizers.Tokenizer:
    """`name`: o200k_base or cl100k_base."""
    if name not in PATTERNS:
        raise ValueError(
            f"{name}.tiktoken: the pattern of these ranks is not known, only those of {', '.join(PATTERNS)}; "
            "write a tokenizer.json of it (transformers: convert_tiktoken_to_fast)"
        )
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            token, rank = read_line(line, f"{name}.tiktoken:{number}")
            ranks[token] = rank
    tokens = sorted(ranks, key=lambda token: ranks[token])
    if [ranks[token] for token in tokens] != [*range(len(tokens))] or len(tokens) < 256:
        raise ValueError(f"{name}.tiktoken: the ranks are not 0, 1, 2 …; fetch the file again")
    core = tokenizers.Tokenizer.from_str(write_definition(tokens, PATTERNS[name]))
    core.model.ignore_merges = True  # tiktoken looks first whether a part is a token as it is
    return core


def read_line(line: str, place: str) -> tuple[bytes, int]:
    """read_line("IQ== 0") -> (b"!", 0)."""
    try:
        token, rank = line.split()
        return base64.b64decode(token, validate=True), int(rank)
    except (ValueError, binascii.Error) as error:
        raise ValueError(
            f"{place}: no token in base 64 and its rank ({error}); fetch the file again"
        ) from None
