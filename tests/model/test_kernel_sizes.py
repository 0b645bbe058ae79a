"""Sizes of blocks and grids, against Triton's own functions."""

from __future__ import annotations

import pytest

from foresail.model.kernels.sizes import count_blocks, power_from

triton = pytest.importorskip("triton")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 63, 64, 65, 1000])
def test_powers_and_blocks_are_tritons(number: int) -> None:
    assert power_from(number) == triton.next_power_of_2(number)
    for size in (1, 3, 64):
        assert count_blocks(number, size) == triton.cdiv(number, size)


def test_nothing_still_has_a_block() -> None:
    assert power_from(0) == 1
