from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from foresail.curate.deduplicate import groups
from foresail.curate.deduplicate.groups import equal_groups


@pytest.mark.parametrize("memory", [10**9, 50_000, 1])
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("kinds", [1, 900])
def test_groups_are_those_of_a_dictionary(tmp_path, memory, words, kinds):
    dice = np.random.default_rng(kinds)
    stock = dice.integers(0, 2**64, (kinds, words), dtype=np.uint64)
    stock[0, 0] = 0
    if words == 2:
        stock[1::2, 0] = stock[: len(stock[1::2]) * 2 : 2, 0]  # only the second word differs
    keys = stock[dice.integers(0, kinds, 2000)]
    expected = defaultdict(list)
    for number, key in enumerate(keys.tolist()):
        if key[0]:
            expected[tuple(key)].append(number + 5)
    found = []

    def parts():
        for begin in range(0, len(keys), 300):
            yield keys[begin : begin + 300], np.arange(begin, min(begin + 300, len(keys))) + 5

    for numbers, starts in equal_groups(parts, len(keys), memory, tmp_path / "scratch"):
        assert starts[0] == 0 and starts[-1] == len(numbers)
        found += [numbers[a:b].tolist() for a, b in pairwise(starts)]
    assert sorted(found) == sorted(those for those in expected.values() if len(those) > 1)
    assert not list(tmp_path.rglob("*[0-9][0-9][0-9]"))


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("others", [0, 1, 3000])
def test_a_key_that_nearly_all_have_is_not_split_again_and_again(tmp_path, monkeypatch, words, others):
    """By the keys that are written, not by time."""
    written = []
    plain = groups.split

    def counted(keys, files, shift):
        counts = plain(keys, files, shift)
        written.append(sum(counts[1]))
        return counts

    monkeypatch.setattr(groups, "split", counted)
    total = 20_000 + others
    keys = np.full((total, words), 2**63 + 5, np.uint64)
    dice = np.random.default_rng(1)
    keys[dice.permutation(total)[:others]] = dice.integers(1, 2**64, (others, words), dtype=np.uint64)
    common = np.flatnonzero(np.all(keys == np.uint64(2**63 + 5), axis=1))
    found = [*equal_groups(lambda: iter([(keys, np.arange(total))]), total, 64 * 300, tmp_path / "scratch")]
    assert len(found) == 1 and np.array_equal(found[0][0], common)
    assert found[0][1].tolist() == [0, len(common)]
    assert sum(written) <= 4 * total
