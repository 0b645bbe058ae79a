"""Special tokens of two tokenizers that do the same: end a text, pad, open a turn of the user.

    match_roles(old, new) -> {0: Role("eos", (2,)), 3: Role("user's turn", (1, 4093, 198))}

Ours opens a turn by one token, <|user|>. Its vector is then the mean of those that ChatML opens it with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from foresail.records import Message
from foresail.tokenizer.chat import ChatTemplate
from foresail.tokenizer.tokenizer import Tokenizer

NAMED = ("eos_token", "bos_token", "unk_token", "pad_token")  # in this order: pad is often eos
Turn = Literal["system", "user", "assistant", "tool"]
TURNS: tuple[Turn, ...] = ("assistant", "user", "system", "tool")
WORDS = "trial words"


@dataclass(frozen=True)
class Role:
    """What a new special token is for, and the old tokens that do it."""

    name: str
    old_ids: tuple[int, ...]


def match_roles(old: Tokenizer, new: Tokenizer) -> dict[int, Role]:
    """By new id; a token with two roles has the first of: end of a turn, names in the config, openings of turns."""
    roles: dict[int, Role] = {}

    def enter(token: str | None, role: Role) -> None:
        number = None if token is None else new.token_id(token)
        if number is not None and role.old_ids:
            roles.setdefault(number, role)

    if old.chat is not None and new.chat is not None:
        old_end, new_end = (find_specials(t, ending_of(t)) for t in (old, new))
        enter(*first_pair(new_end, Role("end of a turn", as_ids(old, old_end[:1]))))
    for name in NAMED:
        theirs = old.files.special_token(name)
        enter(new.files.special_token(name), Role(name.removesuffix("_token"), as_ids(old, [theirs])))
    for turn in TURNS:
        was, now = (opening(t.chat, turn) if t.chat is not None else "" for t in (old, new))
        for token, ids in pair_openings(old, was, new, now):
            enter(token, Role(f"{turn}'s turn", ids))
    return roles


def first_pair(tokens: list[str], role: Role) -> tuple[str | None, Role]:
    return (tokens[0] if tokens else None), role


def as_ids(tokenizer: Tokenizer, tokens: list[str] | list[str | None]) -> tuple[int, ...]:
    numbers = (tokenizer.token_id(token) for token in tokens if token is not None)
    return tuple(number for number in numbers if number is not None)


def ending_of(tokenizer: Tokenizer) -> str:
    return "" if tokenizer.chat is None else tokenizer.chat.turn_ending()


def opening(chat: ChatTemplate, turn: Turn) -> str:
    """What a template writes before a turn's words, as far as it can be told: "<|im_start|>user\\n"."""
    try:
        if turn == "assistant":
            return chat.next_turn(()).removeprefix(chat.turn_ending())
        between = chat.next_turn([Message(role=turn, content=WORDS)])
    except ValueError:
        return ""
    return between.partition(WORDS)[0].removeprefix(chat.turn_ending()) if WORDS in between else ""


def pair_openings(old: Tokenizer, was: str, new: Tokenizer, now: str) -> list[tuple[str, tuple[int, ...]]]:
    """Special tokens of the new opening with old ids: a single one for all of the old, others in their order."""
    ours = find_specials(new, now)
    if not was or not ours:
        return []
    if ours == [now.strip()]:
        return [(ours[0], tuple(old.encode(was)))]
    return [
        (token, as_ids(old, [before])) for token, before in zip(ours, find_specials(old, was), strict=False)
    ]


def find_specials(tokenizer: Tokenizer, text: str) -> list[str]:
    """Those in a text, in their order."""
    specials = {tokenizer.token_id(token): token for token in tokenizer.special_tokens()}
    return [specials[number] for number in tokenizer.encode(text) if number in specials]
