"""The shingles of a text, in plain Python: what the compiled kernel computes, to read and to compare with.

Lower case, only letters, digits and marks. A shingle is `ngram` words in a row; in scripts without spaces it is
`ngram_characters` characters; where they mix, a word counts as much as its part of a shingle.

    shingles("One, two three four five six!", ngram=5) -> ["one two three four five", "two three four five six"]
    shingles("short", ngram=5) -> ["short"]
"""

from __future__ import annotations

from functools import lru_cache

from foresail.curate.deduplicate.characters import MARK, SEPARATOR, UNSPACED, WORD, composed, kind_of


def shingles(text: str, ngram: int = 5, ngram_characters: int = 8) -> list[str]:
    tokens = tokens_of(composed(text).decode())
    weights = [ngram_characters if is_word else ngram for _, is_word in tokens]
    target = ngram * ngram_characters
    windows, end, weight = [], 0, 0
    for start in range(len(tokens)):
        while weight < target and end < len(tokens):
            weight += weights[end]
            end += 1
        if weight < target:
            break
        windows.append(joined(tokens[start:end]))
        weight -= weights[start]
    if tokens and not windows:
        windows.append(joined(tokens))
    return windows


def tokens_of(text: str) -> list[tuple[str, bool]]:
    """Tokens, and whether each is a word."""
    tokens: list[tuple[str, bool]] = []
    before = SEPARATOR
    for character in text:
        kind, lowered = kind_and_lower(character)
        if kind == MARK and before != SEPARATOR:
            tokens[-1] = (tokens[-1][0] + character, tokens[-1][1])
            continue
        if kind == WORD and before == WORD:
            tokens[-1] = (tokens[-1][0] + lowered, True)
        elif kind in (WORD, UNSPACED):
            tokens.append((lowered, kind == WORD))
        before = SEPARATOR if kind == MARK else kind
    return tokens


@lru_cache(10_000)
def kind_and_lower(character: str) -> tuple[int, str]:
    lowered = character.lower()
    return kind_of(character), lowered if len(lowered) == 1 else character


def joined(tokens: list[tuple[str, bool]]) -> str:
    """A space between two words, none elsewhere."""
    text, after_word = "", False
    for token, is_word in tokens:
        text += f" {token}" if after_word and is_word else token
        after_word = is_word
    return text
