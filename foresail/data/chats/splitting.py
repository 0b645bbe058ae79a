"""A conversation that is too long, in parts that fit: split between exchanges, never inside a message.

An exchange begins with a user message and ends before the next. A part has the conversation's system messages and
as many exchanges as fit behind them. Each exchange is in one part only, so every token is learnt once. Plain text,
which has no turns, is split between tokens: a part begins with the last token of the part before, without a loss.

    system, user 1, assistant 1, user 2, assistant 2  ->  system, user 1, assistant 1 | system, user 2, assistant 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foresail.records import Message, TrainSequence

Ids = tuple[list[int], list[int]]  # and the loss mask
Encode = Callable[[Sequence[int]], Ids]  # of these messages, by their numbers


@dataclass(frozen=True, kw_only=True)
class Split:
    """The parts, and how many exchanges were left out because they are too long even alone."""

    parts: tuple[TrainSequence, ...]
    lost: int


def split_messages(messages: Sequence[Message], encode: Encode, max_tokens: int, name: str) -> Split:
    opening, exchanges = find_exchanges(messages)
    pieces: list[Ids] = []
    current: list[int] = []
    fitting: Ids | None = None
    lost = 0
    for exchange in exchanges:
        longer = encode([*opening, *current, *exchange])
        if len(longer[0]) <= max_tokens:
            current, fitting = [*current, *exchange], longer
            continue
        if fitting is not None:
            pieces.append(fitting)
            longer = encode([*opening, *exchange])
        current, fitting = [*exchange], longer
        if len(longer[0]) > max_tokens:
            lost += 1
            current, fitting = [], None
    if fitting is not None:
        pieces.append(fitting)
    return Split(parts=name_parts(pieces, name), lost=lost)


def split_text(ids: list[int], loss_mask: list[int], max_tokens: int, name: str) -> Split:
    """Ids 0 to 9 in parts of at most 4: [0 … 3], [3 … 6], [6 … 9]; the first of each has no loss."""
    pieces = []
    for start in range(0, max(1, len(ids) - 1), max_tokens - 1):
        part = slice(start, start + max_tokens)
        pieces.append((ids[part], [0, *loss_mask[part][1:]]))
    return Split(parts=name_parts(pieces, name), lost=0)


def find_exchanges(messages: Sequence[Message]) -> tuple[list[int], list[list[int]]]:
    """The numbers of the system messages at the beginning, and of those of each exchange."""
    first = next((index for index, message in enumerate(messages) if message.role != "system"), 0)
    exchanges: list[list[int]] = []
    for index in range(first, len(messages)):
        if not exchanges or (messages[index].role == "user" != messages[index - 1].role):
            exchanges.append([])
        exchanges[-1].append(index)
    return [*range(first)], exchanges


def name_parts(parts: Sequence[Ids], name: str) -> tuple[TrainSequence, ...]:
    return tuple(
        TrainSequence(name=f"{name}, part {number}", ids=ids, loss_mask=mask)
        for number, (ids, mask) in enumerate(parts, start=1)
    )
