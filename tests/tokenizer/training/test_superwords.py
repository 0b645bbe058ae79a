"""Superwords: BPE that goes on without the cut at blanks, against a slow BPE; and tokenizers with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
import tokenizers

from foresail.tokenizer.training.build import build
from foresail.tokenizer.training.merges import encode_slowly, every_split, merge_ranks
from foresail.tokenizer.training.pattern import SUPERWORDS, cut_by
from foresail.tokenizer.training.reachable import unreached
from foresail.tokenizer.training.recipe import TokenizerRecipe
from foresail.tokenizer.training.superwords import continue_bpe

Pair = tuple[int, int]


def merge_slowly(
    parts: list[list[int]], weights: Sequence[int], lengths: list[int], count: int, max_length: int
) -> list[Pair]:
    """By the definition: count all pairs, join the most frequent, repeat."""
    merges: list[Pair] = []
    while len(merges) < count:
        counts: dict[Pair, int] = {}
        for part, weight in zip(parts, weights, strict=True):
            for pair in pairwise(part):
                counts[pair] = counts.get(pair, 0) + weight
        short = [
            (-number, pair)
            for pair, number in counts.items()
            if lengths[pair[0]] + lengths[pair[1]] <= max_length
        ]
        if not short:
            break
        best = min(short)[1]
        merges.append(best)
        lengths.append(lengths[best[0]] + lengths[best[1]])
        for part in parts:
            place = 0
            while place < len(part) - 1:
                if (part[place], part[place + 1]) == best:
                    part[place : place + 2] = [len(lengths) - 1]
                place += 1
    return merges


@pytest.mark.parametrize("seed", range(200))
def test_merges_are_those_of_a_slow_bpe(seed: int) -> None:
    random = Random(seed)
    symbols = random.randrange(1, 5)
    parts = [
        [random.randrange(symbols) for _ in range(random.randrange(12))]
        for _ in range(random.randrange(1, 8))
    ]
    weights = [random.randrange(1, 4) for _ in parts]
    lengths = [random.randrange(1, 3) for _ in range(symbols)]
    fast = continue_bpe(parts, weights=weights, lengths=lengths, count=20, max_length=8)
    assert fast == merge_slowly([[*part] for part in parts], weights, [*lengths], 20, 8)


TEXTS = {
    "english": ["one of the ships of the sea is one of the best, in 1999.\n", "most of the sea\n\nis wide"]
    * 20,
    "thai": ["เรือแล่นในทะเล ทะเลกว้าง", "เรือใหญ่แล่น"] * 20,
}


def recipe(**changes: object) -> TokenizerRecipe:
    groups = [{"name": name, "files": [name], "vocab_size": 40} for name in TEXTS]
    superwords = {"tokens": 12, "max_characters": 20, "megabytes": 0.1}
    return TokenizerRecipe.model_validate(
        {"out": "-", "vocab_size": 336, "group": groups, "superwords": superwords, **changes}
    )


def test_superwords_span_blanks_and_every_token_is_reached() -> None:
    made = build(recipe(), lambda group: TEXTS[group.name])
    core = tokenizers.Tokenizer.from_str(made.tokenizer.files.definition)
    tokens = [token.decode(errors="ignore") for token in made.vocabulary.tokens]
    assert made.tokenizer.vocab_size == 336 and unreached(core, made.vocabulary.tokens) == {}
    assert any(" of the" in token for token in tokens)
    assert max(map(len, tokens)) <= 20
    assert not any("\n" in token.strip("\n") or any(c.isdigit() for c in token[1:]) for token in tokens)
    assert len(core.encode(" of the sea").ids) < 3


def test_texts_survive_and_are_encoded_as_by_a_slow_bpe() -> None:
    made = build(recipe(), lambda group: TEXTS[group.name])
    core = tokenizers.Tokenizer.from_str(made.tokenizer.files.definition)
    ranks = merge_ranks(every_split(made.vocabulary.tokens))
    random = Random(0)
    for _ in range(200):
        words = random.choices([*"of the sea one 1 . \n , ทะเล é 👩 \x00".split(" "), " ", "  "], k=9)
        text = random.choice(["", " "]).join(words)
        encoding = core.encode(text)
        assert core.decode(encoding.ids) == text
        parts = [part.encode() for part, _ in cut_by(SUPERWORDS).pre_tokenize_str(text)]
        slow = [token for part in parts for token in encode_slowly(part, ranks)]
        assert slow == [made.vocabulary.tokens[number] for number in encoding.ids]


def test_training_with_superwords_is_deterministic() -> None:
    one, other = (build(recipe(), lambda group: TEXTS[group.name]).tokenizer.files for _ in range(2))
    assert one == other


def test_superwords_that_fill_the_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match="fill all of vocab_size 336; lower them"):
        recipe(superwords={"tokens": 336})
