"""A vocabulary of an exact size from candidate pieces, the best first, in which merges alone reach every token.

    fill(["th", "the", …], base=spell(["t", "h", "e"]), size=32_000, pattern=WORDS)

It holds the base (the 256 bytes, and characters spelled by chains of tokens) and as many candidates as fit. In a
union of vocabularies the merges of one block tokens of another: " código" becomes " có", "d", "igo", since " có" is
ranked before. Such a token gets a bridge, here "digo": a further token that completes the way. What no bridge
reaches is left out, and the next candidate takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import tokenizers

from foresail.tokenizer.training.definition import write_definition
from foresail.tokenizer.training.pattern import cut_by
from foresail.tokenizer.training.reachable import is_text, unreached

BYTES = [bytes([value]) for value in range(256)]
ROUNDS = 12  # of building bridges; later ones only leave tokens out
MOST_BRIDGES = 0.5  # of the candidates' places
Note = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """`tokens` in the order of their ids."""

    tokens: tuple[bytes, ...]
    bridges: tuple[str, ...]
    left_out: tuple[str, ...]


def spell(characters: Iterable[str]) -> list[bytes]:
    """The bytes, and all characters with the beginnings that lead to them: "ก" by E0, E0 B8, E0 B8 81."""
    return [*dict.fromkeys([*BYTES, *(token for character in characters for token in chain(character))])]


def chain(character: str) -> list[bytes]:
    """A character and its beginnings, short ones first: chain("ก") -> [b"\\xe0\\xb8", b"\\xe0\\xb8\\x81"]."""
    spelled = character.encode()
    return [spelled[:end] for end in range(2, len(spelled) + 1)]


def fill(
    candidates: Sequence[str],
    *,
    base: Sequence[bytes],
    size: int,
    pattern: str,
    note: Note = lambda text: None,
) -> Vocabulary:
    """`candidates` are also the order of merges; those of the base go before."""
    room = size - len(base)
    if room < 0:
        raise ValueError(
            f"{len(base)} bytes and characters do not fit into {size} tokens; raise vocab_size or lower "
            "character_coverage"
        )
    known = {*base}
    ranks = {
        piece: float(rank)
        for rank, piece in enumerate(dict.fromkeys(candidates))
        if piece.encode() not in known
    }
    bridges: dict[str, None] = {}
    left_out: dict[str, None] = {}
    round_number = 0
    while True:
        chosen = choose(ranks, bridges, left_out, room)
        tokens = [*base, *(piece.encode() for piece in chosen)]
        lost = unreached(tokenizers.Tokenizer.from_str(write_definition(tokens, pattern)), tokens)
        note(f"{len(tokens):,} tokens, {len(bridges):,} bridges, {len(lost):,} not reached")
        if not lost:
            break
        round_number += 1
        taken = {*tokens}
        for token, parts in lost.items():
            piece = token.decode()
            building = round_number <= ROUNDS and len(bridges) < MOST_BRIDGES * room
            bridge = bridge_of(parts, taken, left_out) if building else None
            if bridge is not None and not is_cut(piece, pattern):
                bridges[bridge] = None
                ranks[bridge] = min(ranks.get(bridge, room), ranks.get(piece, room)) - 0.5
            else:
                left_out[piece] = None
                bridges.pop(piece, None)
                assert token not in known, f"merges do not reach {piece!r} of the base"
    if len(chosen) < room:
        raise ValueError(
            f"the texts give {len(tokens):,} tokens, {size:,} are asked for; give more text, or lower vocab_size"
        )
    return Vocabulary(tokens=tuple(tokens), bridges=tuple(bridges), left_out=tuple(left_out))


def choose(
    ranks: Mapping[str, float], bridges: Mapping[str, None], left_out: Mapping[str, None], room: int
) -> list[str]:
    """Bridges, and the best candidates beside them, by rank."""
    free = room - len(bridges)
    others = (
        piece
        for piece in sorted(ranks, key=ranks.__getitem__)
        if piece not in bridges and piece not in left_out
    )
    return sorted([*bridges, *take(others, free)], key=ranks.__getitem__)


def take(pieces: Iterator[str], count: int) -> Iterator[str]:
    for _, piece in zip(range(count), pieces, strict=False):
        yield piece


def bridge_of(parts: Sequence[bytes], known: set[bytes], left_out: Mapping[str, None]) -> str | None:
    """bridge_of([b" co", b"d", b"igo"], …) -> "digo": the shorter text that leads from these parts to the whole."""
    ends = (b"".join(parts[1:]), b"".join(parts[:-1]))
    new = [end for end in ends if end not in known and is_text(end) and end.decode() not in left_out]
    return min(new, key=len).decode() if new else None


def is_cut(piece: str, pattern: str) -> bool:
    """Whether the pattern never leaves this piece in one part."""
    return len(cut_by(pattern).pre_tokenize_str(piece)) > 1
