"""Estimates over turns: by hand, and where they are those over tokens."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from foresail.algorithms.advantages import gae
from foresail.algorithms.turn_gae import turn_gae


def tensor(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_turn_gae_by_hand():
    # gamma .9, lam .5. First sample: errors .1 + .9 * .8 - .5 = .32 and 1 - .8 = .2; .32 + .45 * .2 = .41.
    # The second sample's two turns have numbers 0 and 2: in turn 1 the policy wrote nothing.
    rewards = tensor([0.1, 0, 0, 1, 0, -1])
    values = tensor([0.5, 9, 0.8, 9, 0.4, 0.3])
    sequence, turns = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([0, 0, 1, 1, 0, 2])
    found = turn_gae(rewards, values, sequence, turns, gamma=0.9, lam=0.5)
    # second sample: errors .9 * .3 - .4 = -.13 and -1 - .3 = -1.3; -.13 + .45 * -1.3 = -.715
    torch.testing.assert_close(found.advantages_M, tensor([0.41, 0.41, 0.2, 0.2, -0.715, -1.3]))
    torch.testing.assert_close(found.returns_M, tensor([0.91, 0.91, 1.0, 1.0, -0.315, -1.0]))
    assert found.first_M.tolist() == [True, False, True, False, True, True]


def test_the_last_turn_of_a_sample_and_the_first_of_the_next_are_two():
    """Also where both have the same number."""
    found = turn_gae(
        tensor([1, 2]), tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([0, 0]), gamma=1.0, lam=1.0
    )
    assert found.advantages_M.tolist() == [1.0, 2.0] and found.first_M.all()


@given(
    st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 99)
)
def test_turn_gae_is_gae_with_a_turn_for_a_token(shape, seed):
    """Whatever the values within turns are; and turns of one token are tokens."""
    lengths = [length for sample in shape for length in sample]
    sequence_K = torch.tensor([number for number, sample in enumerate(shape) for _ in sample])
    turns_K = torch.tensor([turn for sample in shape for turn, _ in enumerate(sample)])
    generator = torch.Generator().manual_seed(seed)
    rewards_K, values_K = torch.randn(2, len(lengths), dtype=torch.float64, generator=generator)
    expected_K = gae(rewards_K, values_K, sequence_K, gamma=0.9, lam=0.7)

    repeats = torch.tensor(lengths)
    sequence_M, turns_M = sequence_K.repeat_interleave(repeats), turns_K.repeat_interleave(repeats)
    values_M = torch.randn(len(turns_M), dtype=torch.float64, generator=generator)
    rewards_M = torch.zeros(len(turns_M), dtype=torch.float64)
    ends = repeats.cumsum(0)
    values_M[ends - repeats] = values_K
    rewards_M[ends - 1] = rewards_K
    found = turn_gae(rewards_M, values_M, sequence_M, turns_M, gamma=0.9, lam=0.7)
    torch.testing.assert_close(found.advantages_M, expected_K.repeat_interleave(repeats))
    torch.testing.assert_close(found.returns_M, (expected_K + values_K).repeat_interleave(repeats))
