"""Texts that are made to cost much: comparisons are counted, and stay in proportion to the documents."""

from __future__ import annotations

import random

import numpy as np
import pytest
from deduplicate.repeats import decide, documents, named

from foresail.curate.deduplicate.candidates import LEADERS
from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.document import Drop


def smallest_words(step: Minhash, stock: int) -> list[str]:
    """For each permutation of the first band the word that has the least number: they win in every text."""
    words = [f"w{number}" for number in range(stock)]
    signatures_nP, _ = step.signatures(words)
    return [words[number] for number in np.argmin(signatures_nP[:, : step.cut[1]], axis=0)]


def colliding_texts(step: Minhash, count: int) -> list[str]:
    """All have the same first band, and little else in common."""
    dice = random.Random(count)
    common = smallest_words(step, stock=20_000)
    return [
        " ".join([*common, *(f"u{dice.randrange(10**9)}" for _ in range(40 + number % 20))])
        for number in range(count)
    ]


@pytest.mark.parametrize("count", [500, 3000])
def test_comparisons_are_in_proportion_where_all_texts_share_a_band(tmp_path, count):
    step = Minhash(ngram=1)
    texts = colliding_texts(step, count)
    copied = random.Random(1).sample(range(count), 20)
    outcomes, figures = decide(step, tmp_path, [documents([*texts, *(texts[number] for number in copied)])])
    assert figures["candidates"] > 0.9 * count
    assert 0.9 * LEADERS * (count - LEADERS) < figures["comparisons"] < LEADERS * (count + 20) * 1.05
    assert not any(isinstance(outcome, Drop) for outcome in outcomes[0][:count])
    first = [named(outcome) for outcome in outcomes[0][count:] if isinstance(outcome, Drop)]
    assert first == [f"d:{number}" for number in copied]  # by their other bands


def test_a_hundred_thousand_equal_texts_are_compared_once_each(tmp_path):
    """In memory for 16 thousand keys."""
    count = 100_000
    step = Minhash(memory_gib=1e-3, permutations=32)
    _, figures = decide(step, tmp_path, [documents(["The same words."] * count)])
    assert figures["comparisons"] == count - 1
    assert (figures["removed"], figures["largest"]) == (count - 1, count)


def test_texts_of_one_character_and_texts_without_words(tmp_path):
    """One word each, of another length; a script without spaces has one shingle, however long the text."""
    texts = ["", " ", "!?" * 500, "-" * 1000]
    texts += ["a" * length for length in range(1, 200)]
    texts += ["\u0e01" * length for length in range(8, 100)]
    texts.append("b" * 10_000_000)
    outcomes, figures = decide(Minhash(), tmp_path, [documents(texts)])
    dropped = [number for number, outcome in enumerate(outcomes[0]) if isinstance(outcome, Drop)]
    assert dropped == [*range(204, 295)]
    assert {named(outcomes[0][number]) for number in dropped} == {"d:203"}
    assert figures["comparisons"] <= len(texts)
