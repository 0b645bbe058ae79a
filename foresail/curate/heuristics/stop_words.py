"""Stop words of many languages: which words of a text are some, and which language has the most of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foresail.curate.heuristics.characters import Array, class_table, code_points, lower_table
from foresail.curate.heuristics.words import hash_word

DEFAULT = "default"


@dataclass(frozen=True)
class StopWords:
    """`keys_W`: sorted hashes of all stop words; `of_LW`: which of them each language has."""

    languages: tuple[str, ...]
    keys_W: Array
    of_LW: Array
    metadata_key: str

    @classmethod
    def of(cls, words: Mapping[str, Sequence[str]], metadata_key: str = "language") -> StopWords:
        hashed = {language: {key_of(word) for word in own} for language, own in words.items()}
        keys = np.array(sorted(set().union(*hashed.values())), np.uint64)
        of = np.array([[int(key) in own for key in keys] for own in hashed.values()], bool)
        return cls(tuple(hashed), keys, of.reshape(len(hashed), len(keys)), metadata_key)

    def find(self, hashes: Array, metadata: Mapping[str, Any]) -> tuple[str, Array]:
        """The language, by metadata or else the one with the most stop words; and which words are stop words."""
        places = np.searchsorted(self.keys_W, hashes)
        places[places == len(self.keys_W)] = 0
        known = self.keys_W[places] == hashes
        language = str(metadata.get(self.metadata_key, ""))
        if language not in self.languages:
            counts = self.of_LW @ np.bincount(places[known], minlength=len(self.keys_W))
            if not counts.any():
                return DEFAULT, known
            language = self.languages[int(counts.argmax())]
        return language, known & self.of_LW[self.languages.index(language)][places]


def key_of(word: str) -> int:
    """One word; in scripts without spaces, one character and its marks."""
    return int(hash_word(code_points(word), class_table(), lower_table()))
