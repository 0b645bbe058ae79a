"""Attention results are merged in place: no warp may read a sum that another has merged already."""

from __future__ import annotations

import re

import pytest

triton = pytest.importorskip("triton", reason="Triton comes with PyTorch for CUDA")

POINTERS = {"out": "*bf16", "sums": "*fp32", "more": "*bf16", "more_sums": "*fp32"}


@pytest.mark.parametrize("head_dim", [32, 64, 128])
def test_all_warps_have_read_the_sums_before_one_writes_them(head_dim: int) -> None:
    """By the code that Triton makes of it, for which no GPU is needed. Without the barrier a busy card was found to
    give other logits in one run of ten."""
    from triton.backends.compiler import GPUTarget

    from foresail.model.kernels.merge_attention import TOKENS, merge_kernel

    fixed = {"HEADS": 12, "HEAD": head_dim, "D": head_dim, "TOKENS": TOKENS}
    kernel = triton.runtime.JITFunction(merge_kernel.fn)  # which the suite interprets where there is no GPU
    types = dict.fromkeys(kernel.arg_names, "i32") | POINTERS | dict.fromkeys(fixed, "constexpr")
    aligned = {(place,): [["tt.divisibility", 16]] for place in range(len(POINTERS))}
    source = triton.compiler.ASTSource(kernel, types, constexprs=fixed, attrs=aligned)
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    steps = re.findall(r"ld\.global|st\.global|bar\.sync", ptx)
    assert steps[-1] == "st.global" and steps[-2] == "bar.sync", steps
    assert steps.count("ld.global") > 4 and "ld.global" not in steps[steps.index("st.global") :]
