"""Token weights against hand numbers, and against the definitions they stand for."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.algorithms.aggregation import Aggregation, token_weights
from foresail.recipe.tables.policy_loss import Loss

lengths = st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token-mean", [1 / 4, 1 / 4]),
        ("seq-mean-token-mean", [1 / 2, 1 / 6]),
        ("seq-mean-token-sum", [1 / 2, 1 / 2]),
        ("constant", [1 / 20, 1 / 20]),
    ],
)
def test_weights_by_hand(mode, expected):
    assert token_weights([1, 3], mode, 10) == pytest.approx(expected)


def test_modes_are_the_recipe_s():
    assert get_args(Aggregation) == get_args(Loss.model_fields["aggregation"].annotation)


@given(lengths)
def test_the_weights_of_all_tokens_sum_to_what_the_mode_says(num_tokens):
    def total(mode):
        return sum(n * w for n, w in zip(num_tokens, token_weights(num_tokens, mode, 64), strict=True))

    counted = [n for n in num_tokens if n]
    mean_length = sum(counted) / len(counted)
    assert total("token-mean") == pytest.approx(1)
    assert total("seq-mean-token-mean") == pytest.approx(1)
    assert total("seq-mean-token-sum") == pytest.approx(mean_length)
    assert total("constant") == pytest.approx(mean_length / 64)


@pytest.mark.parametrize("mode", get_args(Aggregation))
def test_a_sequence_without_loss_tokens_changes_nothing_for_the_others(mode):
    first, empty, second = token_weights([2, 0, 5], mode, 10)
    assert [first, second] == token_weights([2, 5], mode, 10)
    assert empty == 0
    assert token_weights([0, 0], mode, 10) == [0, 0]
