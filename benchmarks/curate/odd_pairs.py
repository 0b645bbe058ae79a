"""Writes foresail/curate/heuristics/odd_pairs.toml: for each language, which stop words hardly ever follow which.

    python benchmarks/curate/odd_pairs.py ../shared/data > foresail/curate/heuristics/odd_pairs.toml

"the of" is such a pair, "of the" is none. A pair counts as odd if at least EXPECTED would stand in words of random
order, and at most one in RARE of these stand in the text. Only the half of the documents is read that
`heuristic_rules.py` does not report on.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from heuristic_documents import UNSPACED, half_of, joined, read

from foresail.curate.heuristics.rules import read_rules

EXPECTED, RARE = 4.0, 16
LINE = 110


def main(data: Path) -> None:
    print(
        '# Stop words behind which others hardly ever stand: "the" = ["of", …]. Where words are in random order,'
    )
    print(
        "# there are many such pairs. Written by benchmarks/curate/odd_pairs.py from half of its documents."
    )
    for language, stop_words in sorted(read_rules("").stop_words.items()):
        file = data / f"text/train/{language}.jsonl.xz"
        if all(len(word) == 1 for word in stop_words) or language not in UNSPACED:
            texts = [text for text in joined(read(file), language) if half_of(text) == "tune"]
            random.Random(language).shuffle(texts)
            print_pairs(language, odd_pairs(texts, stop_words, language))


def odd_pairs(texts: Iterable[str], stop_words: Iterable[str], language: str) -> dict[str, list[str]]:
    counts: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    known, total = set(stop_words), 0
    for text in texts:
        for line in text.split("\n"):
            for sentence in re.split(r"[.!?。！？…]", line):
                words = sentence_words(sentence, language)
                total += len(words)
                counts.update(word for word in words if word in known)
                pairs.update(pair for pair in pairwise(words) if pair[0] in known and pair[1] in known)
    found: dict[str, list[str]] = {}
    for first in sorted(known):
        expected = {word: counts[first] * counts[word] / max(total, 1) for word in sorted(known)}
        odd = [
            word
            for word, number in expected.items()
            if number >= EXPECTED and pairs[first, word] * RARE <= number
        ]
        if odd:
            found[first] = odd
    return found


def sentence_words(sentence: str, language: str) -> list[str]:
    if language in UNSPACED:
        return list(sentence)
    return [word.strip(",;:()[]\"'«»“”„’‘-–—*_`") for word in sentence.lower().split()]


def print_pairs(language: str, pairs: dict[str, list[str]]) -> None:
    print(f"\n[{language}]")
    for first, followers in pairs.items():
        line = f'"{first}" = ['
        for word in followers:
            if len(line) + len(word) + 4 > LINE:
                print(line.rstrip())
                line = "    "
            line += f'"{word}", '
        print(line.rstrip(", ") + "]")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
