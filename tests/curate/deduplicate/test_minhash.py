from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from deduplicate.make_reference import CUTS, REFERENCE, SIGNED, paired_texts, signed_texts
from deduplicate.repeats import cut, decide, documents, jaccard, named, texts_with_copies
from deduplicate.strange_texts import hostile_texts

from foresail.curate.deduplicate.kernels import sha1
from foresail.curate.deduplicate.kernels.signatures import SHA1_FILE
from foresail.curate.deduplicate.minhash import EMPTY, Minhash
from foresail.curate.deduplicate.permutations import permutations
from foresail.curate.deduplicate.shingles import shingles
from foresail.curate.document import Drop
from foresail.recipe.reading.load import RecipeError, check_table

STORED = json.loads(REFERENCE.read_text())


def test_shingles_are_words_or_characters():
    assert shingles("One, two THREE four five six!") == ["one two three four five", "two three four five six"]
    assert shingles("short text") == ["short text"]
    assert shingles("... !") == []
    assert shingles("ไม่เว้น", ngram_characters=3) == ["ไม่เ", "ม่เว้", "เว้น"]
    assert shingles("买 iPhone 十五", ngram=2, ngram_characters=3) == ["买iphone十", "iphone十五"]


@pytest.mark.parametrize("settings", SIGNED)
def test_signatures_are_those_of_datasketch(settings):
    count, seed, ngram, characters = settings
    step = Minhash(permutations=count, seed=seed, ngram=ngram, ngram_characters=characters)
    made, _ = step.signatures(signed_texts())
    hashes = [hashlib.sha256(own.astype("<u4").tobytes()).hexdigest()[:16] for own in made]
    assert hashes == STORED["signatures"][json.dumps(list(settings))]


@pytest.mark.parametrize("settings", CUTS)
def test_candidates_are_those_of_datasketch(tmp_path, settings):
    threshold, bands, rows = settings
    step = Minhash(threshold=threshold or 0.5, bands=bands, rows=rows, verify=False)
    expected = STORED["pairs"][json.dumps(list(settings))]
    assert list(step.cut) == expected["cut"]
    made, shingles_n = step.signatures(paired_texts())
    pairs = {
        (first, second)
        for keys in step.keys(made, shingles_n)
        for key in np.unique(keys)
        for second in np.flatnonzero(keys == key).tolist()
        for first in np.flatnonzero(keys == key).tolist()
        if first < second
    }
    assert sorted(map(list, pairs)) == expected["pairs"]
    outcomes, _ = decide(step, tmp_path, [documents(paired_texts())])
    number_of = {f"d:{number}": number for number in range(len(made))}
    front = list(range(len(made)))  # connected by the plainest rule: pull fronts down until nothing moves
    while any(front[one] != front[other] for one, other in pairs):
        for one, other in pairs:
            front[one] = front[other] = min(front[one], front[other])
    found = [
        number_of[named(outcome)] if isinstance(outcome, Drop) else number
        for number, outcome in enumerate(outcomes[0])
    ]
    assert found == front


def plain_signature(text, count):
    """Without the kernel."""
    a, b = permutations(count, 1)
    made = np.full(count, EMPTY, np.uint32)
    for shingle in shingles(text):
        h = int.from_bytes(hashlib.sha1(shingle.encode()).digest()[:4], "little")
        h = ((h ^ h >> 16) * 0x85EBCA6B) & EMPTY
        h = ((h ^ h >> 13) * 0xC2B2AE35) & EMPTY
        made = np.minimum(made, a * np.uint32(h ^ h >> 16) + b)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_kernel_computes_what_plain_python_does(seed):
    texts = hostile_texts(seed, count=40)
    made, shingles_n = Minhash(permutations=9).signatures(texts)
    for text, own, count in zip(texts, made, shingles_n, strict=True):
        assert count == len(shingles(text)), text[:40]
        assert np.array_equal(own, plain_signature(text, 9)), text[:40]


def test_compiled_signatures_notice_another_sha1():
    """numba compiles again when signatures.py changes, not when sha1.py does."""
    source = Path(sha1.__file__).read_bytes()
    assert hashlib.sha256(source).hexdigest()[:8] == SHA1_FILE, "write this checksum into signatures.py"


@pytest.mark.parametrize("seed", range(2))
def test_shingles_of_every_length_are_hashed_right(seed):
    """One block of SHA-1 holds 55 bytes, two 119."""
    dice = random.Random(seed)
    texts = ["".join(dice.choices("abcdé", k=length)) for length in range(140)]
    made, _ = Minhash(permutations=5, ngram=1).signatures([*texts, " ".join(dice.sample(texts, len(texts)))])
    alone = [plain_signature(text, 5) for text in texts]
    assert np.array_equal(made[:-1], alone)
    assert np.array_equal(made[-1], np.min(alone[1:], axis=0))


@pytest.mark.parametrize(("verify", "least"), [(True, 0.65), (False, 0.5)])
def test_every_removed_document_is_like_the_one_it_names(tmp_path, verify, least):
    """The oracle reads the texts again: a step that mixes up documents names strangers."""
    texts = texts_with_copies(seed=1, originals=150)
    pieces = cut(documents(texts), 0, 70, 1, 90)
    outcomes, figures = decide(Minhash(verify=verify), tmp_path, pieces)
    text_of = {document.id: document.text for piece in pieces for document in piece}
    verdicts = {
        document.id: outcome
        for piece, decided in zip(pieces, outcomes, strict=True)
        for document, outcome in zip(piece, decided, strict=True)
    }
    dropped = {name: named(outcome) for name, outcome in verdicts.items() if isinstance(outcome, Drop)}
    assert len(dropped) == figures["removed"] > 50
    for name, first in dropped.items():
        assert first not in dropped
        assert jaccard(text_of[name], text_of[first]) > least
    counted = sum(
        outcome.metadata["occurrences"] for name, outcome in verdicts.items() if name not in dropped
    )
    assert counted == len(texts)


def test_clear_duplicates_are_not_missed(tmp_path):
    texts = texts_with_copies(seed=2, originals=100)
    outcomes, _ = decide(Minhash(), tmp_path, [documents(texts)])
    dropped = {number for number, outcome in enumerate(outcomes[0]) if isinstance(outcome, Drop)}
    sets = [set(shingles(text)) for text in texts]
    clear = {
        second
        for second, own in enumerate(sets)
        for other in sets[:second]
        if len(own & other) > 0.93 * len(own | other)
    }
    assert len(clear) > 10
    assert not clear - dropped


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("sizes", [(), (1, 2, 3, 0, 50)])
def test_memory_and_pieces_change_nothing(tmp_path, verify, sizes):
    texts = texts_with_copies(seed=3, originals=60)
    plain, _ = decide(Minhash(verify=verify), tmp_path / "plain", [documents(texts)])
    little = Minhash(verify=verify, memory_gib=1e-6)
    outcomes, _ = decide(little, tmp_path / "little", cut(documents(texts), *sizes))
    assert [outcome for piece in outcomes for outcome in piece] == plain[0]


def test_a_chain_of_changes_ends(tmp_path):
    """Each text is like the one before; with comparison the last is not said to repeat the first."""
    dice = random.Random(5)
    text = [f"word{dice.randrange(10_000)}" for _ in range(300)]
    texts = []
    for start in range(0, 300, 10):
        text[start : start + 10] = [f"new{dice.randrange(10_000)}" for _ in range(10)]
        texts.append(" ".join(text))
    outcomes, _ = decide(Minhash(verify=False), tmp_path / "1", [documents(texts)])
    assert sum(isinstance(outcome, Drop) for outcome in outcomes[0]) == len(texts) - 1
    outcomes, _ = decide(Minhash(), tmp_path / "2", [documents(texts)])
    for number, outcome in enumerate(outcomes[0]):
        if isinstance(outcome, Drop):
            assert jaccard(texts[number], texts[int(named(outcome)[2:])]) > 0.65


@pytest.mark.parametrize(
    "text", ["x" * 3_000_000, "x " * 1_000_000, "\u0301a\u0316" * 500_000, "ก" * 1_000_000]
)
def test_a_monstrous_document_takes_memory_in_proportion(text):
    Minhash().signatures(["warm"])
    tracemalloc.start()
    _, shingles_n = Minhash().signatures([text, "after"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shingles_n[1] == 1
    assert peak < 12 * len(text.encode()) + 2_000_000


def test_bands_must_fit():
    with pytest.raises(RecipeError, match="more than the 128 permutations"):
        check_table("step", {"bands": 20, "rows": 10}, {}, [], Minhash)
    with pytest.raises(RecipeError, match="write both"):
        check_table("step", {"bands": 20}, {}, [], Minhash)
