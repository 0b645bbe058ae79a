from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

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
