"""The noise is a pure function of its key and position, and it looks like chance."""

from __future__ import annotations

import numpy as np
import torch

from foresail.engine.noise import noise_key, uniforms

WORD = (1 << 64) - 1


def splitmix64(key: int, position: int) -> float:
    """The published generator on Python's whole numbers: its `position`-th output, as a number in (0, 1)."""
    state = (key + (position + 1) * 0x9E3779B97F4A7C15) & WORD
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & WORD
    mixed ^= mixed >> 31
    return ((mixed >> 16) + 0.5) / 2**48


def draw(keys: list[int], positions: list[int]) -> np.ndarray:
    return uniforms(torch.tensor(keys), torch.tensor(positions)).numpy()


def test_splitmix64_gives_the_published_numbers():
    """First outputs for seed 1234567, from the generator's public test vectors."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [splitmix64(1234567, n) for n in range(3)] == [((x >> 16) + 0.5) / 2**48 for x in published]


def test_uniforms_equal_splitmix64_on_whole_numbers():
    keys = [0, 1, -1, 2**63 - 1, -(2**63), *(noise_key(0, 0, "p", n) for n in range(50))]
    positions = [0, 1, 7, 1000, 2**20]
    for position in positions:
        found = draw(keys, [position] * len(keys)).tolist()
        assert found == [splitmix64(key, position) for key in keys]


def test_noise_does_not_depend_on_the_batch():
    keys = [noise_key(0, 0, "p", n) for n in range(64)]
    positions = list(range(64))
    together = draw(keys, positions).tolist()
    assert together == [draw([key], [position])[0] for key, position in zip(keys, positions, strict=True)]
    assert together[::-1] == draw(keys[::-1], positions[::-1]).tolist()


def test_keys_never_change():
    """A changed value would break the replay of every stored rollout."""
    assert noise_key(0, 3, "gsm8k:17", 5) == 6160440686480773370
    assert noise_key(0, 0, "", 0) == 5025828445998450009
    assert noise_key(1, -1, "Aufgabe ü", 15) == -9103795349878712555
    assert draw([noise_key(0, 3, "gsm8k:17", 5)], [11])[0] == 0.6682999028891654


def test_every_part_of_the_key_counts():
    parts = [(0, 0, "p", 0), (1, 0, "p", 0), (0, 1, "p", 0), (0, 0, "q", 0), (0, 0, "p", 1), (0, 0, "", 0)]
    shifted = [(1, 11, "p", 0), (11, 1, "p", 0), (1, 1, "1p", 0), (1, 1, "p", 10), (1, 1, "p1", 0)]
    keys = [noise_key(*key) for key in parts + shifted]
    assert len(set(keys)) == len(keys)
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_noise_is_uniform():
    """Kolmogorov-Smirnov over samples, over positions, and over both: the 0.1 % bound is 1.95 / sqrt(n)."""
    keys = [noise_key(7, step, f"p{problem}", 0) for step in range(20) for problem in range(1000)]
    for values in (
        draw(keys, [12] * len(keys)),
        draw(keys[:1] * 20_000, list(range(20_000))),
        draw(keys, [n % 50 for n in range(len(keys))]),
    ):
        ordered = np.sort(values)
        expected = (np.arange(len(ordered)) + 0.5) / len(ordered)
        assert np.abs(ordered - expected).max() < 1.95 / np.sqrt(len(ordered))
        assert ordered[0] > 0 and ordered[-1] < 1


def test_neighbours_are_independent():
    """Pairs of neighbouring positions, and of neighbouring samples, fill an 8 x 8 board evenly."""
    sample_keys = [noise_key(0, 0, "p", n) for n in range(20_001)]
    by_position = draw(sample_keys[:1] * 20_001, list(range(20_001)))
    by_sample = draw(sample_keys, [3] * 20_001)
    for values in (by_position, by_sample):
        cells = (values[:-1] * 8).astype(int) * 8 + (values[1:] * 8).astype(int)
        counts = np.bincount(cells, minlength=64)
        chi_square = ((counts - 20_000 / 64) ** 2 / (20_000 / 64)).sum()
        assert chi_square < 103.4  # 63 degrees of freedom, 0.1 %


def test_the_ends_of_the_range_are_never_reached():
    """Both bounds of the 48-bit number stay inside (0, 1), also after scaling by a sum below or above 1."""
    smallest, largest = 0.5 * 2.0**-48, (2.0**48 - 0.5) * 2.0**-48
    for total in (1.0, 0.9999999, 1.0000001, 1 / 3):
        assert smallest * total > 0 and largest * total < total
