"""Attention results are merged in place: no warp may read a sum that another has merged already."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton comes with PyTorch for CUDA")

# A process of its own: where Triton has interpreted a kernel, as it does in this suite, it compiles none.
COMPILE = """
import json, re, triton
from triton.backends.compiler import GPUTarget
from foresail.model.kernels.merge_attention import TOKENS, merge_kernel

pointers = {"out": "*bf16", "sums": "*fp32", "more": "*bf16", "more_sums": "*fp32"}
aligned = {(place,): [["tt.divisibility", 16]] for place in range(len(pointers))}
for head_dim in (32, 64, 128):
    fixed = {"HEADS": 12, "HEAD": head_dim, "D": head_dim, "TOKENS": TOKENS}
    types = dict.fromkeys(merge_kernel.arg_names, "i32") | pointers | dict.fromkeys(fixed, "constexpr")
    source = triton.compiler.ASTSource(merge_kernel, types, constexprs=fixed, attrs=aligned)
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    print(json.dumps(re.findall(r"ld\\.global|st\\.global|bar\\.sync", ptx)))
"""


def test_all_warps_have_read_the_sums_before_one_writes_them() -> None:
    """By the code that Triton makes of it, for which no GPU is needed. Without the barrier one pass in two hundred
    gave other logits on a busy card (benchmarks/training/repeated_pass.py)."""
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    made = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    kernels = [json.loads(line) for line in made.stdout.splitlines()]
    assert len(kernels) == 3
    for steps in kernels:
        assert steps[-1] == "st.global" and steps[-2] == "bar.sync", steps
        assert steps.count("ld.global") > 4 and "ld.global" not in steps[steps.index("st.global") :]
