"""What is measured of a text, and how a reason to drop it reads.

measure("One line.\nOne line.", {}, english)["repeated_lines"] -> 0.5
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from foresail.curate.heuristics.characters import Array, class_table, code_points, lower_table
from foresail.curate.heuristics.kind import Kind, kind_of
from foresail.curate.heuristics.lines import (
    BRACES,
    BROKENS,
    CHARACTERS,
    CODE,
    DIGITS,
    EMPTY,
    ENDED,
    ITEM,
    KIND,
    LETTERS,
    STRAY,
    ends_in_ellipsis,
    line_rows,
)
from foresail.curate.heuristics.repeats import block_keys, block_repeats, gram_shares
from foresail.curate.heuristics.stop_words import StopWords
from foresail.curate.heuristics.words import (
    BEGINS_LOWER,
    BEGINS_UPPER,
    ENDS_SENTENCE,
    FIRST_OF_LINE,
    HAS_LETTER,
    IS_IDEOGRAPH,
    IS_SYLLABLE,
    SHOUTS,
    split_words,
)

TOPS, REPEATS = (2, 3, 4), (5, 6, 7, 8, 9, 10)
SYLLABLES_PER_WORD, IDEOGRAPHS_PER_WORD = 3.0, 1.6
SHORT_LINE = 30  # characters
LONG_WORD = 60  # characters

# each measure: what a detail says of its value
MEASURES: dict[str, str] = {
    "words": "{} words",
    "word_length": "words of {} letters in the mean",
    "long_words": "{} of the characters are in words of more than 60",
    "symbols": "{} signs like # and … for a word",
    "letter_words": "{} of the words have letters",
    "letters": "{} of the characters are letters",
    "digits": "{} of the characters are digits",
    "broken": "{} of the characters are broken",
    "stray_marks": "{} of the letters are marks and vowels that cannot stand there",
    "capitals": "{} of the words are in capitals",
    "stop_words": "{} different stop words",
    "stop_word_share": "{} of the words are stop words",
    "top_word": "{} of the words are one word, no stop word",
    "lower_starts": "{} of the sentences begin with a small letter",
    "ellipsis_lines": "{} of the lines end in an ellipsis",
    "bullet_lines": "{} of the lines begin with a bullet or number",
    "ended_lines": "{} of the characters are in lines that end like a sentence",
    "short_lines": "{} of the lines are short",
    "repeated_lines": "{} of the lines are repeats",
    "repeated_line_characters": "{} of the characters are in repeated lines",
    "repeated_paragraphs": "{} of the paragraphs are repeats",
    "repeated_paragraph_characters": "{} of the characters are in repeated paragraphs",
    "braces": "{} curly brackets for a word",
    "lorem_ipsum": "{} times lorem ipsum",
    **{f"top_{n}_gram": f"{{}} of the characters are one sequence of {n} words" for n in TOPS},
    **{
        f"repeated_{n}_grams": f"{{}} of the characters are in repeated sequences of {n} words"
        for n in REPEATS
    },
}
Measures = dict[str, float]


def measure(text: str, metadata: Mapping[str, Any], stop_words: StopWords) -> tuple[Kind, str, Measures]:
    """Kind and language of the text, and all measures. In prose, lines of code are left out."""
    codes, classes = code_points(text), class_table()
    rows = line_rows(codes, classes)
    kind = kind_of(rows, metadata)
    if kind != "code" and (prose := rows[rows[:, KIND] != CODE])[:, CHARACTERS].sum() > 0:
        rows = prose
    hashes, lengths, flags, lines = split_words(codes, classes, lower_table(), rows)
    language, stops = stop_words.find(hashes, metadata)
    values = word_measures(hashes, lengths, flags, stops)
    values |= line_measures(codes, rows, values["words"])
    values |= repeat_measures(hashes, lengths, flags, lines, rows)
    values["lorem_ipsum"] = text.lower().count("lorem ipsum")
    return kind, language, values


def word_measures(hashes: Array, lengths: Array, flags: Array, stops: Array) -> Measures:
    """`stops`: which words are stop words."""
    count = max(len(hashes), 1)
    has_letter = flags & HAS_LETTER > 0
    syllables, ideographs = (int((flags & mark > 0).sum()) for mark in (IS_SYLLABLE, IS_IDEOGRAPH))
    spaced = flags & (IS_SYLLABLE | IS_IDEOGRAPH) == 0
    spaced_words = int(spaced.sum())
    characters = max(int(lengths.sum()), 1)
    ends = (flags[:-1] & ENDS_SENTENCE > 0) & (flags[1:] & FIRST_OF_LINE == 0)
    lower, upper = flags[1:] & BEGINS_LOWER > 0, flags[1:] & BEGINS_UPPER > 0
    sentences = int((ends & (lower | upper)).sum())
    _, counts = np.unique(hashes[has_letter & ~stops & spaced], return_counts=True)
    return {
        "words": spaced_words + syllables / SYLLABLES_PER_WORD + ideographs / IDEOGRAPHS_PER_WORD,
        "word_length": float(lengths[spaced & has_letter].mean())
        if (spaced & has_letter).sum() > 0.5 * count
        else 5.0,
        "long_words": float(lengths[lengths > LONG_WORD].sum()) / characters,
        "letter_words": float(has_letter.sum()) / count,
        "capitals": float((flags & SHOUTS > 0).sum()) / count,
        "stop_words": len(np.unique(hashes[stops])),
        "stop_word_share": float(stops.sum()) / count,
        "top_word": float(counts.max()) / count if len(counts) else 0.0,
        "lower_starts": float((ends & lower).sum()) / sentences if sentences >= 5 else 0.0,
    }


def line_measures(codes: Array, rows: Array, words: float) -> Measures:
    rows = rows[rows[:, KIND] != EMPTY]
    count = max(len(rows), 1)
    sizes = rows[:, CHARACTERS]
    characters = max(int(sizes.sum()), 1)
    letters = int(rows[:, LETTERS].sum())
    signs = int(np.isin(codes, (35, 0x2026)).sum())
    return {
        "symbols": signs / max(words, 1.0),
        "letters": letters / characters,
        "digits": float(rows[:, DIGITS].sum()) / characters,
        "broken": float(rows[:, BROKENS].sum()) / characters,
        "stray_marks": float(rows[:, STRAY].sum()) / max(letters, 1),
        "ellipsis_lines": sum(ends_in_ellipsis(codes, row) for row in rows) / count,
        "bullet_lines": float((rows[:, KIND] == ITEM).sum()) / count,
        "ended_lines": float(sizes[rows[:, ENDED] > 0].sum()) / characters,
        "short_lines": float((sizes <= SHORT_LINE).sum()) / count,
        "braces": float(rows[:, BRACES].sum()) / max(words, 1.0),
    }


def repeat_measures(hashes: Array, lengths: Array, flags: Array, lines: Array, rows: Array) -> Measures:
    scale = 1
    for mark, units in ((IS_SYLLABLE, SYLLABLES_PER_WORD), (IS_IDEOGRAPH, IDEOGRAPHS_PER_WORD)):
        if (flags & mark > 0).sum() * 2 > len(flags):
            scale = round(units)
    tops, repeats = gram_shares(hashes, lengths, np.array(TOPS), np.array(REPEATS), scale)
    line_share, line_characters = block_repeats(*block_keys(hashes, lines, rows, False))
    paragraph_share, paragraph_characters = block_repeats(*block_keys(hashes, lines, rows, True))
    return {
        "repeated_lines": line_share,
        "repeated_line_characters": line_characters,
        "repeated_paragraphs": paragraph_share,
        "repeated_paragraph_characters": paragraph_characters,
        **{f"top_{n}_gram": float(share) for n, share in zip(TOPS, tops, strict=True)},
        **{f"repeated_{n}_grams": float(share) for n, share in zip(REPEATS, repeats, strict=True)},
    }
