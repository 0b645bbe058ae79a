"""Measures a text: kind, language, and a number for each of MEASURES.

measure("One line is here.\nOne line is here.", {}, stop_words).values["repeated_lines"] -> 0.5
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from foresail.curate.heuristics import columns, counts
from foresail.curate.heuristics.characters import (
    Array,
    class_table,
    code_points,
    family_table,
    lower_table,
)
from foresail.curate.heuristics.kind import Kind, kind_of
from foresail.curate.heuristics.lines import line_rows
from foresail.curate.heuristics.measures import REPEATS, TOPS
from foresail.curate.heuristics.repeats import block_keys, block_repeats, gram_shares, top_word, variety
from foresail.curate.heuristics.stop_words import StopWords
from foresail.curate.heuristics.words import split_words

# letters of a word where there are no spaces, and how many make a sequence as telling as a word
SYLLABLES_PER_WORD, IDEOGRAPHS_PER_WORD = 3.0, 1.6
SYLLABLE_SCALE, IDEOGRAPH_SCALE = 4, 2
WINDOW = 100  # words whose variety is measured
LARGE_BLOCK = 20  # characters; smaller lines may repeat: names, dates, prices
LONGEST = 10_000_000  # characters of a text that are measured: memory is bounded
FEWEST_PAIRS = 8  # of stop words, before which the share of odd ones says nothing
FEWEST_POINTS = 8  # sentences before which the share of small first letters says nothing
TOPS_N, REPEATS_N = np.array(TOPS), np.array(REPEATS)
NOT_MEASURED = math.nan  # breaks no limit


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    kind: Kind
    language: str
    values: dict[str, float]


def measure(text: str, metadata: Mapping[str, Any], stop_words: StopWords) -> Measured:
    """In prose, maths and listings, lines of code are left out."""
    text = text[:LONGEST]
    codes = code_points(text)
    rows = line_rows(codes, class_table())
    kind = kind_of(rows, metadata)
    if kind != "code":
        rest = rows[rows[:, columns.KIND] != columns.CODE]
        rows = rest if rest[:, columns.CHARACTERS].any() else rows
    hashes, lengths, flags, lines = split_words(codes, class_table(), lower_table(), family_table(), rows)
    found = stop_words.find(text, hashes, flags, metadata)
    counted = counts.count_words(lengths, flags, found.numbers, found.odd)
    values = word_values(counted) | line_values(rows, counted)
    values |= stop_word_values(counted, found.different, found.share)
    values["top_word"] = top_word(
        hashes, (flags & columns.UNSPACED == 0) & (found.numbers < 0) & (lengths > 1)
    )
    # substrings, or no stop words known
    by_word = found.different is not None and found.share is None
    values["loose_words"] = counts.loose_words(found.numbers, lines, rows) if by_word else NOT_MEASURED
    values |= repeat_values(hashes, lengths, lines, rows, scale_of(counted))
    in_sight = "psum" in text or "PSUM" in text  # most texts need no copy in small letters
    values["placeholders"] = text.lower().count("lorem ipsum") if in_sight else 0
    return Measured(kind=kind, language=found.language, values=values)


def word_values(counted: Array) -> dict[str, float]:
    (words, syllables, ideographs, with_letter, spaced, spaced_characters, characters, long, shouting, mixing,
     sentences, points, lower_after, *_) = counted.tolist()  # fmt: skip
    words = max(words, 1)
    in_words = spaced + syllables / SYLLABLES_PER_WORD + ideographs / IDEOGRAPHS_PER_WORD
    spaced_letters = with_letter - syllables - ideographs
    return {
        "words": in_words,
        "word_length": spaced_characters / spaced_letters if 2 * spaced_letters > words else NOT_MEASURED,
        "long_words": long / max(characters, 1),
        "letter_words": with_letter / words,
        "capitals": shouting / words,
        "mixed_words": mixing / words,
        "listed_words": int(counted[counts.COMMAS]) / words,
        "sentence_ends": sentences / max(in_words, 1.0),
        "lower_starts": lower_after / points if points >= FEWEST_POINTS else NOT_MEASURED,
    }


def stop_word_values(counted: Array, different: int | None, share: float | None) -> dict[str, float]:
    """None: nothing is known of the language."""
    if different is None:
        return dict.fromkeys(("stop_words", "stop_word_share", "odd_pairs"), NOT_MEASURED)
    words, pairs = max(int(counted[counts.WORDS]), 1), int(counted[counts.STOP_PAIRS])
    return {
        "stop_words": different,
        "stop_word_share": int(counted[counts.STOPS]) / words if share is None else share,
        "odd_pairs": int(counted[counts.ODD_PAIRS]) / pairs if pairs >= FEWEST_PAIRS else NOT_MEASURED,
    }


def line_values(rows: Array, counted: Array) -> dict[str, float]:
    kinds = rows[:, columns.KIND]
    lines = max(len(rows) - int((kinds == columns.EMPTY).sum()), 1)
    sums = rows.sum(0).tolist()
    characters, letters = max(sums[columns.CHARACTERS], 1), max(sums[columns.LETTERS], 1)
    words = max(int(counted[counts.WORDS]), 1)
    return {
        "signs": sums[columns.SIGNS] / words,
        "letters": sums[columns.LETTERS] / characters,
        "digits": sums[columns.DIGITS] / characters,
        "broken": sums[columns.BROKENS] / characters,
        "misread": sums[columns.MISREAD] / characters,
        "stray_marks": sums[columns.STRAY] / letters,
        "ellipsis_lines": sums[columns.ELLIPSIS] / lines,
        "bullet_lines": int((kinds == columns.ITEM).sum()) / lines,
        "ended_lines": int(rows[:, columns.CHARACTERS] @ rows[:, columns.ENDED]) / characters,
        "braces": sums[columns.BRACES] / words,
    }


def scale_of(counted: Array) -> int:
    """How many words, as they are split, tell as much as one word of a language with spaces."""
    half = counted[counts.WORDS] / 2
    if counted[counts.SYLLABLES] > half:
        return SYLLABLE_SCALE
    return IDEOGRAPH_SCALE if counted[counts.IDEOGRAPHS] > half else 1


def repeat_values(hashes: Array, lengths: Array, lines: Array, rows: Array, scale: int) -> dict[str, float]:
    tops, repeats = gram_shares(hashes, lengths, TOPS_N, REPEATS_N, scale)
    line_share, line_characters = block_repeats(*block_keys(hashes, lines, rows, False), LARGE_BLOCK)
    paragraph_share, paragraph_characters = block_repeats(*block_keys(hashes, lines, rows, True), LARGE_BLOCK)
    return {
        "repeated_lines": line_share,
        "repeated_line_characters": line_characters,
        "repeated_paragraphs": paragraph_share,
        "repeated_paragraph_characters": paragraph_characters,
        "variety": variety(hashes, WINDOW * scale, scale),
        **{f"top_{n}_gram": share for n, share in zip(TOPS, tops.tolist(), strict=True)},
        **{f"repeated_{n}_grams": share for n, share in zip(REPEATS, repeats.tolist(), strict=True)},
    }
