"""Which old tokens each token of a new tokenizer is made of.

matched = match_tokens(old, new)
matched.copied      {10: 281}              new id -> the old id of the same bytes
matched.roles       {0: Role("eos", (2,))} special tokens, by what they are for
matched.pieces      {11: (401, 7)}         other new ids -> the old tokens of their bytes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foresail.model.transplant.roles import Role, match_roles
from foresail.tokenizer.documents import DocumentEncoder
from foresail.tokenizer.token_bytes import BYTE_TOKEN
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TokenMap:
    """Every new id is in one of the three; pieces are empty where the old tokenizer cannot write the bytes."""

    copied: Mapping[int, int]
    roles: Mapping[int, Role]
    pieces: Mapping[int, tuple[int, ...]]
    specials: frozenset[int]  # new ids, those that are copied among them


def match_tokens(old: Tokenizer, new: Tokenizer) -> TokenMap:
    old_words, new_words = ordinary_tokens(old), ordinary_tokens(new)
    by_bytes = ids_by_bytes(old_words)
    copied: dict[int, int] = {}
    others: dict[int, bytes] = {}
    for token, (number, spelled) in new_words.items():
        same = old_words.get(token)
        if same is not None and same[1] == spelled:
            copied[number] = same[0]
        elif spelled in by_bytes:
            copied[number] = by_bytes[spelled]
        else:
            others[number] = spelled
    specials = {token: id_in(new, token) for token in new.special_tokens()}
    old_specials = set(old.special_tokens())
    copied |= {number: id_in(old, token) for token, number in specials.items() if token in old_specials}
    roles = {number: role for number, role in match_roles(old, new).items() if number not in copied}
    left = {number: token.encode() for token, number in specials.items()}
    others |= {number: name for number, name in left.items() if number not in copied and number not in roles}
    return TokenMap(
        copied=copied,
        roles=roles,
        pieces=dict(zip(others, cut_into_pieces([*others.values()], old, by_bytes), strict=True)),
        specials=frozenset(specials.values()),
    )


def ordinary_tokens(tokenizer: Tokenizer) -> dict[str, tuple[int, bytes]]:
    """Id and bytes of every token that is no special one."""
    specials, spelled = set(tokenizer.special_tokens()), tokenizer.token_bytes()
    every = sorted(tokenizer.vocabulary().items(), key=lambda item: item[1])
    return {token: (number, spelled[number]) for token, number in every if token not in specials}


def ids_by_bytes(words: Mapping[str, tuple[int, bytes]]) -> dict[bytes, int]:
    """The first id of each spelling; a byte's own token, <0x41>, comes after the token A."""
    ids: dict[bytes, int] = {}
    for token, (number, spelled) in sorted(words.items(), key=lambda w: (is_byte(w[0]), w[1][0])):
        if spelled:
            ids.setdefault(spelled, number)
        assert token or not spelled
    return ids


def is_byte(token: str) -> bool:
    return BYTE_TOKEN.fullmatch(token) is not None


def id_in(tokenizer: Tokenizer, token: str) -> int:
    number = tokenizer.token_id(token)
    assert number is not None
    return number


def cut_into_pieces(
    spellings: Sequence[bytes], old: Tokenizer, by_bytes: Mapping[bytes, int]
) -> list[tuple[int, ...]]:
    """As the old tokenizer writes each; bytes that are no whole characters by its longest tokens."""
    texts: dict[int, str] = {}
    for number, spelled in enumerate(spellings):
        try:
            texts[number] = spelled.decode()
        except UnicodeDecodeError:
            continue
    encoded = dict(zip(texts, encode_words([*texts.values()], old), strict=True))
    longest = max(map(len, by_bytes), default=1)
    return [
        tuple(encoded.get(number) or longest_matches(spelled, by_bytes, longest))
        for number, spelled in enumerate(spellings)
    ]


def encode_words(texts: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Each as it stands inside a text; [] where the tokenizer has no token for a part of it."""
    encoder = DocumentEncoder(tokenizer)
    try:
        return encoder.encode(texts, [False] * len(texts))
    except ValueError:
        return [encode_one(text, encoder) for text in texts]


def encode_one(text: str, encoder: DocumentEncoder) -> list[int]:
    try:
        return encoder.encode([text], [False])[0]
    except ValueError:
        return []


def longest_matches(spelled: bytes, by_bytes: Mapping[bytes, int], longest: int) -> list[int]:
    """longest_matches(b"abc", {b"ab": 5, b"c": 6}, 2) -> [5, 6]; [] where a byte has no token."""
    ids: list[int] = []
    start = 0
    while start < len(spelled):
        ends = range(min(len(spelled), start + longest), start, -1)
        end = next((end for end in ends if spelled[start:end] in by_bytes), None)
        if end is None:
            return []
        ids.append(by_bytes[spelled[start:end]])
        start = end
    return ids
