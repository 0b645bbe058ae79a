"""The pieces of one group of texts, in the order in which BPE makes them.

BPE runs on characters, not on bytes: no piece ends inside a character, and its length is known in characters.
`vocabulary.py` spells characters as bytes later, so that the tokenizer itself is byte-level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import tokenizers
from tokenizers import models, trainers

from foresail.tokenizer.training.pattern import WORDS, cut_by


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """`characters`: frequent ones first. `merged`: pieces of several characters, in the order of their merges."""

    characters: tuple[str, ...]
    merged: tuple[str, ...]


def train_pieces(
    texts: Iterable[str],
    *,
    size: int,
    max_characters: int = 16,
    coverage: float = 0.9995,
    pattern: str = WORDS,
) -> Pieces:
    """About `size` pieces, fewer where the texts are too small for so many.

    `coverage`: the share of the texts' characters that are pieces of their own; rare ones are written as bytes.
    """
    texts = list(texts)
    characters = frequent_characters(texts, coverage)
    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = cut_by(pattern)
    trainer = trainers.BpeTrainer(
        vocab_size=max(size, len(characters)),
        max_token_length=max_characters + 1,  # the library's limit is one below the number
        limit_alphabet=len(characters),
        initial_alphabet=list(characters),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    by_id = sorted(core.get_vocab().items(), key=lambda item: item[1])
    return Pieces(characters=tuple(characters), merged=tuple(piece for piece, _ in by_id if len(piece) > 1))


def frequent_characters(texts: Iterable[str], coverage: float) -> list[str]:
    """The fewest characters that make up this share of the texts: frequent_characters(["aab"], .6) -> ["a"]."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    needed = coverage * counts.total()
    frequent: list[str] = []
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if needed <= 0:
            break
        frequent.append(character)
        needed -= count
    return frequent
