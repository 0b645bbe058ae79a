"""Comparison of two tokenizers' vocabularies."""

from __future__ import annotations

from foresail.tokenizer.tokenizer import Tokenizer


def vocabulary_difference(one: Tokenizer, other: Tokenizer) -> str | None:
    """A sentence about the first id with another meaning; None where all ids mean the same.

    Reserved tokens behind the last id that both have do not count, nor do chat templates.
    """
    mine, theirs = ({id: token for token, id in t.vocabulary().items()} for t in (one, other))
    for id in range(max(one.vocab_size, other.vocab_size)):
        if mine.get(id) != theirs.get(id) and not (reserved(mine.get(id)) and reserved(theirs.get(id))):
            meanings = [
                repr(token) if token is not None else "nothing" for token in (mine.get(id), theirs.get(id))
            ]
            return f"id {id} is {meanings[0]} in the one and {meanings[1]} in the other"
    return None


def reserved(token: str | None) -> bool:
    """Whether no text becomes this token: it is absent, or kept for later, as <|reserved_7|> is."""
    return token is None or "reserved" in token or "unused" in token
