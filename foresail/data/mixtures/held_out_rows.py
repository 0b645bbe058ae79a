"""The choice of a source's held-out conversations, by their content alone: the same in every run and stage."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from foresail.records import TrainSequence


def choose_held_out(sequences: Sequence[TrainSequence], amount: float, source: str) -> frozenset[int]:
    """Numbers of the held-out ones, at least one: a share of all if `amount` is below 1, else that many."""
    places = [place_of(sequence) for sequence in sequences]
    if amount < 1:
        last = max(amount, min(places))
    elif amount < len(places):
        last = sorted(places)[int(amount) - 1]
    else:
        last = 1.0
    held_out = frozenset(number for number, place in enumerate(places) if place <= last)
    if len(held_out) == len(sequences):
        raise ValueError(
            f"{source}: held_out keeps all {len(sequences)} conversations from training; lower it, or bring more"
        )
    return held_out


def place_of(sequence: TrainSequence) -> float:
    """A number in [0, 1) that belongs to the conversation, whatever its mask and its name are."""
    digest = hashlib.blake2b(",".join(map(str, sequence.ids)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64
