"""The profile's sorting and sums; the times themselves need a GPU."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from gpu_profile import OTHER, Kernel, Profile, figures, fill_weights, kind_of

from foresail.recipe.shape.model_shape import ModelShape

ROOT = Path(__file__).parents[2]


def launched_kernels() -> set[str]:
    """Names of all functions that are called as kernel[grid](...), those of training aside."""
    folders = [ROOT / "foresail" / room / "kernels" for room in ("engine", "model")]
    files = [file for folder in folders for file in folder.glob("*.py") if file.stem != "likelihood"]
    calls = (
        node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)
    )
    launches = (call.func.value for call in calls if isinstance(call.func, ast.Subscript))
    return {launch.id for launch in launches if isinstance(launch, ast.Name)}


def test_every_kernel_of_ours_has_a_kind():
    names = {name for name in launched_kernels() if "gradient" not in name}
    assert {"_attend_split", "_write_rows", "norm_kernel", "_advance"} <= names
    assert not [name for name in names if kind_of(name) == OTHER]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nvjet_tst_128x64_64x10_1x2_h_bz_TNN", "products"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_cublas", "products"),
        ("void gemvNSP_kernel<__nv_bfloat16, __nv_bfloat16, float>(cublasGemvParamsEx)", "products"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)", "products"),
        ("multiply_kernel", "products"),
        ("gated_kernel", "experts"),
        ("_attend_pack", "attention"),
        ("_merge_parts", "attention"),
        ("silu_mul_kernel", "swiglu"),
        ("turn_kernel", "norms"),
        ("_locate", "drawing"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", OTHER),
        ("Memcpy DtoH (Device -> Pinned)", OTHER),
    ],
)
def test_kernels_are_sorted_by_name(name, kind):
    assert kind_of(name) == kind


def test_kinds_and_gaps_are_the_whole_step():
    found = Profile(
        title="two layers",
        tokens=4,
        context=10,
        milliseconds=1.0,
        products=1_000_000,
        kernels=[
            Kernel("gemm_1", 4, 100.0),
            Kernel("gemm_2", 2, 50.0),
            Kernel("_attend_split", 2, 40.0),
            Kernel("x", 1, 2),
        ],
    )
    assert found.by_kind == {
        "products": 0.5, "experts": 0, "attention": 0.08, "swiglu": 0, "norms": 0, "drawing": 0, OTHER: 0.002
    }  # fmt: skip
    assert found.gaps == pytest.approx(0.418) and found.launches == 9
    # 4 tokens x 1M weights x 2 in half a millisecond; 2 MB in the same
    assert found.product_rates == pytest.approx((0.016, 0.004))
    assert [name for name, *_ in figures(found)["kernels"]] == [
        "gemm_1",
        "gemm_2",
        "_attend_split",
    ]  # x is small


def test_a_prefill_stops_at_the_last_keys_and_values():
    shape = ModelShape(
        vocab_size=99,
        hidden_size=8,
        intermediate_size=10,
        num_layers=3,
        num_heads=4,
        num_kv_heads=2,
        head_dim=6,
        max_context=64,
    )
    block = 8 * (4 + 2 + 2) * 6 + 4 * 6 * 8 + 3 * 8 * 10
    assert fill_weights(shape) == 2 * block + 8 * (2 + 2) * 6
