"""Whether a response loops, or says again what the conversation has said.

    repeats(read_response("We add two. " * 5))       -> "5 times: we add two."
    "1. Sleep well\n2. Sleep well\n…"                -> numbers make no difference
    said_before("What is DNA?…", earlier, "…")       -> "the question again: What is DNA?…"

A loop is the same piece several times in a row. Beside it: the same sentence or line again and again, with others
between, and a response of which most letters stand in long n-grams that stood before. Tables, code, formulas and
HTML do not count, and verse may have refrains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from foresail.curate.conversations.responses.loops import find_loops, repeated_letters
from foresail.curate.conversations.responses.parts import Response, excerpt, normalised, words_in

GRAM = 8  # letters by which a loop is found
SHORT_GRAM, FEW = 15, 0.25
LONG_GRAM = 50
SHORTEST = 60  # characters of all rounds
LONGEST_SHORT = 12  # letters of a piece that needs many rounds: "ha ha ha"
ZERO = ord("0")  # all digits count as it
NO_LETTER = re.compile(r"[\W\d_]+")
SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
VERSE = 50  # letters of a line
AGAIN = 60  # letters of an answer that should not come twice
TABLE_LINE = re.compile(r"^[ \t]*\|.*$|^.*(?:\t.*){2,}$", re.MULTILINE)


def loop_in(plain: str, codes: np.ndarray) -> str:
    """What loops, or "". `codes`: of the text with its digits as one."""
    for start, period, length in find_loops(codes, GRAM, SHORTEST // 2)[0]:
        piece = plain[start : start + period]
        if is_loop(piece, plain, int(start), int(period), int(length)):
            return f"{length // period} times: {excerpt(piece.strip() or piece, 80)}"
    return ""


def is_loop(piece: str, plain: str, start: int, period: int, length: int) -> bool:
    letters = len(NO_LETTER.sub("", piece))
    rounds = length / period
    share = length / len(plain)
    if letters == 0:
        # Digits and signs: rules, blanks to fill in and decimals may be long.
        return length >= 300 and share > 0.5 and any(sign.isalnum() for sign in piece)
    is_exact = plain[start : start + length - period] == plain[start + period : start + length]
    weight = 2 if not piece.isascii() and words_in(piece) * 3 > letters else 1  # Han says more in a letter
    if weight * length < SHORTEST:
        return False
    letters *= weight
    if letters < 4 * weight or letters < 0.25 * period:
        return is_exact and length >= 150 and (share > 0.4 or letters == weight == period)
    if letters <= LONGEST_SHORT:
        return is_exact and rounds >= 12 and length >= 100
    if not is_exact:
        return rounds >= 4 and letters >= 25 and length >= 200
    return rounds >= 4 or (rounds >= 3 and letters >= 30) or (rounds >= 2 and letters >= 160)


def sentences_again(text: str) -> str:
    """The same sentence or line, with others between; or most of the text again in other order."""
    parts = [part for part in (one.strip() for one in SENTENCE.split(text)) if part]
    keys = [NO_LETTER.sub("", part.lower()) for part in parts]
    total = sum(map(len, keys))
    if total < 120:
        return ""
    counts = Counter(key for key in keys if len(key) >= 15)
    lines = [line for line in text.split("\n") if line.strip()]
    is_verse = len(lines) >= 4 and total / len(lines) < VERSE
    if counts:
        key, count = max(counts.items(), key=lambda item: (item[1] * len(item[0]), item[0]))
        share = count * len(key) / total
        if count >= (8 if is_verse else 5) and share >= (0.6 if is_verse else 0.4):
            return f"{count} times: {excerpt(parts[keys.index(key)], 80)}"
        extra = sum((count - 1) * len(key) for key, count in counts.items())
        if extra >= 0.7 * total and total >= 300:
            sentence = excerpt(parts[keys.index(key)], 60)
            return f"{extra / total:.0%} of the letters are in sentences that stood before: {sentence}"
    return ""


def grams_again(text: str) -> str:
    """Most letters are in long n-grams that stood before."""
    plain = NO_LETTER.sub("", text.lower())
    if len(plain) < 500:
        return ""
    repeated, _ = repeated_letters(codes_of(plain), LONG_GRAM)
    if repeated < 0.7 * len(plain):
        return ""
    return f"{repeated / len(plain):.0%} of the letters are in n-grams that stood before"


def repeats(response: Response) -> str:
    """In the answer without code and tables, or in the thought."""
    for text in (response.prose, response.thought):
        if len(text) < SHORTEST // 2:
            continue
        text = TABLE_LINE.sub("", text) if "|" in text or "\t" in text else text
        plain = " ".join(text.lower().split())
        codes = codes_of(plain)
        codes = np.where((codes > ZERO) & (codes <= ZERO + 9), np.uint32(ZERO), codes)
        if fault := loop_in(plain, codes):
            return fault
        # What the two others look for has many grams again.
        has_many_again = repeated_letters(codes, SHORT_GRAM)[0] >= FEW * len(plain)
        if has_many_again and (fault := sentences_again(text) or grams_again(text)):
            return fault
    return ""


def codes_of(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def said_before(response: Response, question: str, earlier: Sequence[tuple[str, str]]) -> str:
    """The question as a whole, or an answer of before to another question. `earlier`: questions and answers."""
    lengths = [len(question), *(len(answer) for _, answer in earlier)]
    if not any(0.5 * length <= len(response.answer) <= 2 * length + 100 for length in lengths):
        return ""
    key = letters_of(response.answer)
    if len(key) < 20:
        return ""
    asked = letters_of(normalised(question))
    if len(asked) >= AGAIN / 2 and key.startswith(asked) and len(key) - len(asked) <= 0.1 * len(asked):
        return f"the question again: {excerpt(question)}"
    if len(key) < AGAIN:
        return ""
    for before, answer in earlier:
        said = letters_of(normalised(answer))
        is_same = said == key or (key.startswith(said) and len(key) - len(said) <= 0.1 * len(key))
        if is_same and len(said) >= AGAIN and letters_of(normalised(before)) != asked:
            return f"an answer of before again: {excerpt(answer)}"
    return ""


def letters_of(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())
