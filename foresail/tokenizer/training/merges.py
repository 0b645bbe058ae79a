"""The merges of a vocabulary: every split of a token into two known tokens, by the rank of the token.

    every_split([b"a", b"b", b"c", b"ab", b"bc", b"abc"]) -> [(a, b), (b, c), (a, bc), (ab, c)]

A union of vocabularies whose merges are only put together leaves tokens that no text reaches: "the" was t + he in
the one and th + e in the other. With every split, any of the ways leads there. tiktoken encodes by the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise


def every_split(tokens: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """The merges of tokens in their order; a token's own by the length of the first part, short ones first."""
    known = frozenset(tokens)
    return [split for token in tokens for split in splits(token, known)]


def splits(token: bytes, known: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """splits(b"abc", {b"a", b"bc", b"ab"}) -> [(b"a", b"bc")]."""
    return [
        (token[:cut], token[cut:])
        for cut in range(1, len(token))
        if token[:cut] in known and token[cut:] in known
    ]


def merge_ranks(merges: Sequence[tuple[bytes, bytes]]) -> Mapping[tuple[bytes, bytes], int]:
    return {pair: rank for rank, pair in enumerate(merges)}


def encode_slowly(part: bytes, ranks: Mapping[tuple[bytes, bytes], int]) -> list[bytes]:
    """The tokens of a part of a text, by the definition of BPE: join the leftmost pair of the lowest rank, repeat.

    Quadratic: a reference for tests and for parts that are no text.
    """
    tokens = [part[at : at + 1] for at in range(len(part))]
    while len(tokens) > 1:
        best, place = min((ranks.get(pair, len(ranks)), at) for at, pair in enumerate(pairwise(tokens)))
        if best == len(ranks):
            break
        tokens[place : place + 2] = [tokens[place] + tokens[place + 1]]
    return tokens
