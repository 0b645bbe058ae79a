# mypy: allow-untyped-defs
"""Reading keys and values in pages under Triton; packed sequences are pages of one token.

A page holds `PAGE` tokens. The place of a token is page * PAGE + offset.

Legend: N rows of a block, D columns of a block.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def find_places(table, indexes_N, PAGE: tl.constexpr):
    """Places of these tokens of a row whose pages `table` lists: token 35 -> table[2] * 16 + 3."""
    pages_N = tl.load(table + indexes_N // PAGE)
    return pages_N.to(tl.int64) * PAGE + indexes_N % PAGE


@triton.jit
def load_rows(rows, offsets_N, columns_D, WIDTH: tl.constexpr):
    """Rows of `WIDTH` elements as a block (N, D); the columns beyond the width are zero."""
    if columns_D.shape[0] == WIDTH:
        return tl.load(rows + offsets_N[:, None] + columns_D[None, :])
    return tl.load(rows + offsets_N[:, None] + columns_D[None, :], mask=columns_D[None, :] < WIDTH, other=0.0)
