"""Plain attention in float64, one entry at a time, and small caches for the tests of the Triton kernels.

Compiled where there is a GPU; elsewhere Triton's interpreter runs the same source.
Legend: E entries, H query heads, K key/value heads, d head size, L tokens of a context.
"""

from __future__ import annotations

import pytest
import torch
import triton_interpreter  # noqa: F401

from foresail.engine.kernels.parts import Parts

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAGE = 4
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
HALF = torch.bfloat16 if DEVICE == "cuda" else torch.float16  # the interpreter's bf16 products are broken


@pytest.fixture(autouse=True)
def nothing_is_zero_by_chance(monkeypatch):
    """Parts of a context that no kernel writes or marks as empty are NaN, and so is the result."""
    make = Parts.like

    def make_nan(*args):
        return Parts(*(tensor.fill_(torch.nan) for tensor in make(*args)))

    monkeypatch.setattr(Parts, "like", make_nan)


def numbers(*size: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def integers(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def make_cache(rows: int, width: int, heads: int, size: int, dtype: torch.dtype = torch.float32):
    """Random keys and values, and tables that scatter the rows' pages over them."""
    pages = torch.randperm(rows * width, generator=torch.Generator().manual_seed(9))
    keys, values = (numbers(rows * width, PAGE, heads, size, seed=seed).to(dtype) for seed in (1, 2))
    return keys, values, pages.view(rows, width).to(DEVICE, torch.int32)


def read_row(cache: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return cache[table.long()].flatten(0, 1).double()


def attend(q_Hd: torch.Tensor, k_LKd: torch.Tensor, v_LKd: torch.Tensor) -> torch.Tensor:
    """One query token over the keys it is given, in float64."""
    group = q_Hd.shape[0] // k_LKd.shape[1]
    k_LHd, v_LHd = k_LKd.repeat_interleave(group, 1), v_LKd.repeat_interleave(group, 1)
    scores_HL = torch.einsum("hd,lhd->hl", q_Hd.double(), k_LHd) / q_Hd.shape[1] ** 0.5
    return torch.einsum("hl,lhd->hd", scores_HL.softmax(1), v_LHd)


def attend_plainly(q_EHd, keys, values, tables, slots, contexts) -> torch.Tensor:
    out = []
    for q_Hd, slot, context in zip(q_EHd, slots, contexts, strict=True):
        k_LKd, v_LKd = (read_row(cache, tables[slot])[:context] for cache in (keys, values))
        out.append(attend(q_Hd, k_LKd, v_LKd))
    return torch.stack(out)
