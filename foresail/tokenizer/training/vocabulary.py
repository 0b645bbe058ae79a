"""A vocabulary of an exact size from a list of candidate pieces, the best first; every token is reachable.

    fill([["the", …]], characters=["t", "h", "e"], size=32_000, pattern=WORDS)

It holds the 256 bytes; the characters, each spelled by a chain of tokens inside it; and then as many candidates as
fit. A candidate that its own text does not reach is left out, and the next one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import tokenizers

from foresail.tokenizer.training.definition import write_definition
from foresail.tokenizer.training.reachable import unreachable

BYTES = [bytes([value]) for value in range(256)]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """`tokens` in the order of their ids. `unreachable`: pieces that were left out."""

    tokens: tuple[bytes, ...]
    unreachable: tuple[str, ...]


def fill(
    candidates: Sequence[str],
    *,
    characters: Sequence[str],
    size: int,
    pattern: str,
    rank: Callable[[str], float] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Vocabulary:
    """`candidates`: the best first. `rank`: the order of merges, where it is another than the candidates'."""
    base = [*dict.fromkeys([*BYTES, *chain_all(characters)])]
    room = size - len(base)
    if room < 0:
        raise ValueError(
            f"{len(base)} bytes and characters do not fit into {size} tokens; raise vocab_size or lower "
            "character_coverage"
        )
    spelled = set(base)
    supply = (piece for piece in dict.fromkeys(candidates) if piece.encode() not in spelled)
    chosen: dict[str, None] = {}
    left_out: list[str] = []
    while True:
        refill(chosen, supply, room)
        ordered = sorted(chosen, key=rank) if rank else [*chosen]
        tokens = [*base, *(piece.encode() for piece in ordered)]
        lost = unreachable(tokenizers.Tokenizer.from_str(write_definition(tokens, pattern)), tokens)
        lost_pieces = [tokens[number].decode() for number in lost]
        note(f"{len(tokens)} tokens, {len(lost)} not reached")
        if not lost:
            break
        if stuck := [piece for piece in lost_pieces if piece not in chosen]:
            raise AssertionError(f"a character is not reached: {stuck[0]!r}")
        for piece in lost_pieces:
            del chosen[piece]
        left_out += lost_pieces
    if len(chosen) < room:
        raise ValueError(
            f"the texts give {len(tokens)} tokens, {size} are asked for; give more text, or lower vocab_size"
        )
    return Vocabulary(tokens=tuple(tokens), unreachable=tuple(left_out))


def refill(chosen: dict[str, None], supply: Iterator[str], room: int) -> None:
    while len(chosen) < room and (piece := next(supply, None)) is not None:
        chosen[piece] = None


def chain_all(characters: Iterable[str]) -> Iterator[bytes]:
    for character in characters:
        yield from chain(character)


def chain(character: str) -> list[bytes]:
    """A character and its beginnings, short ones first: chain("ก") -> [b"\\xe0\\xb8", b"\\xe0\\xb8\\x81"]."""
    spelled = character.encode()
    return [spelled[:end] for end in range(2, len(spelled) + 1)]
