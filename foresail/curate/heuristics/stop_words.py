"""Stop words of many languages: which words of a text are some, and which language has the most of them.

In languages without spaces between words, stop words are looked for as substrings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foresail.curate.heuristics.characters import Array, class_table, code_points, family_table, lower_table
from foresail.curate.heuristics.columns import UNSPACED
from foresail.curate.heuristics.counts import hash_table, keep_own, number_words
from foresail.curate.heuristics.lines import line_rows
from foresail.curate.heuristics.words import split_words

DEFAULT = "default"
NO_PAIRS = np.zeros((0, 0), np.bool_)
OF_NO_LANGUAGE = ("other", "undecided", "None", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class StopWordsFound:
    """`numbers`: for each word its number among the stop words of the language, or -1. None: language unknown."""

    language: str
    numbers: Array
    odd: Array
    different: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class StopWords:
    """`words` by language; `odd`: for a language, which words hardly ever stand behind which."""

    words: Mapping[str, Sequence[str]]
    odd: Mapping[str, Mapping[str, Sequence[str]]]
    metadata_key: str = "language"

    @cached_property
    def substrings(self) -> dict[str, tuple[str, ...]]:
        """Languages of which stop words are several letters without spaces, like Thai."""
        return {
            name: tuple(own)
            for name, own in self.words.items()
            if any(len(split(word)[0]) > 1 for word in own)
        }

    @cached_property
    def languages_L(self) -> tuple[str, ...]:
        """All others: a stop word is one word, or one character."""
        return tuple(name for name in self.words if name not in self.substrings)

    @cached_property
    def has_spaces_L(self) -> Array:
        own = [
            any((split(word)[1] & UNSPACED).any() for word in self.words[name]) for name in self.languages_L
        ]
        return ~np.array(own, np.bool_)

    @cached_property
    def keys_W(self) -> Array:
        """Hashes of the stop words of these languages, sorted."""
        hashes = {key_of(word) for name in self.languages_L for word in self.words[name]}
        return np.array(sorted(hashes), np.uint64)

    @cached_property
    def table(self) -> tuple[Array, Array]:
        slots, numbers = hash_table(self.keys_W)
        return slots, numbers

    @cached_property
    def has_LW(self) -> Array:
        own = [np.array([key_of(word) for word in self.words[name]], np.uint64) for name in self.languages_L]
        return np.array([np.isin(self.keys_W, keys) for keys in own]).reshape(len(own), len(self.keys_W))

    @cached_property
    def weights_LW(self) -> Array:
        """The same as numbers: products of these are fast."""
        return self.has_LW.astype(np.float32)

    @cached_property
    def odd_pairs(self) -> dict[str, Array]:
        """For a language: which stop word, by number, hardly ever stands behind which."""
        return {name: self.odd_matrix(self.odd.get(name, {})) for name in self.languages_L}

    def odd_matrix(self, pairs: Mapping[str, Sequence[str]]) -> Array:
        matrix_WW = np.zeros((len(self.keys_W), len(self.keys_W)), np.bool_)
        for first, followers in pairs.items():
            keys = np.array([key_of(word) for word in followers], np.uint64)
            row = np.searchsorted(self.keys_W, np.uint64(key_of(first)))
            matrix_WW[row, np.searchsorted(self.keys_W, keys)] = True
        return matrix_WW

    def find(self, text: str, hashes: Array, flags: Array, metadata: Mapping[str, Any]) -> StopWordsFound:
        """The language is that of the metadata, else the one with the most stop words."""
        named = str(metadata.get(self.metadata_key, ""))
        none = np.full(len(hashes), -1, np.int32)
        if named not in self.words and named not in OF_NO_LANGUAGE:
            return StopWordsFound(language=named, numbers=none, odd=NO_PAIRS)
        if named in self.substrings:
            return self.find_substrings(text, (named,), none)
        present_W = np.zeros(len(self.keys_W), np.float32)
        numbers = number_words(hashes, *self.table, present_W)
        language = named
        if named not in self.words:
            has_spaces = 2 * int((flags & UNSPACED > 0).sum()) <= len(hashes)
            counts_L = (self.weights_LW @ present_W) * (self.has_spaces_L == has_spaces)
            if not counts_L.any():
                return self.find_substrings(text, () if has_spaces else tuple(self.substrings), none)
            language = self.languages_L[int(counts_L.argmax())]
        own_W = self.has_LW[self.languages_L.index(language)]
        keep_own(numbers, own_W)
        different = int(((present_W > 0) & own_W).sum())
        return StopWordsFound(
            language=language, numbers=numbers, odd=self.odd_pairs[language], different=different
        )

    def find_substrings(self, text: str, languages: Sequence[str], none: Array) -> StopWordsFound:
        """Of the one of these languages that has the most."""
        best = StopWordsFound(language=DEFAULT, numbers=none, odd=NO_PAIRS, different=0, share=0.0)
        for language in languages:
            counts = {word: text.count(word) for word in self.substrings[language]}
            share = sum(len(word) * count for word, count in counts.items()) / max(len(text), 1)
            if share > (best.share or 0) or len(languages) == 1:
                best = StopWordsFound(
                    language=language,
                    numbers=none,
                    odd=NO_PAIRS,
                    different=sum(count > 0 for count in counts.values()),
                    share=share,
                )
        return best


def split(word: str) -> tuple[Array, Array]:
    codes = code_points(word)
    rows = line_rows(codes, class_table())
    hashes, _, flags, _ = split_words(codes, class_table(), lower_table(), family_table(), rows)
    return hashes, flags


def key_of(word: str) -> int:
    return int(split(word)[0][0])
