"""What a run computes with."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F

from foresail.model.device import ARM, choose_library


@pytest.fixture
def library() -> Iterator[None]:
    before = torch.backends.mkldnn.enabled
    yield
    torch.backends.mkldnn.enabled = before


@pytest.mark.skipif(platform.machine() not in ARM, reason="on other CPUs the library stays what it is")
def test_on_arm_a_row_has_the_same_bits_beside_one_other_and_beside_many(library: None) -> None:
    choose_library(torch.float32)
    torch.manual_seed(0)
    x_MK, weight_NK, stream_MN = torch.randn(600, 64), torch.randn(128, 64), torch.randn(600, 128)
    for rows in range(2, 20):
        product = F.linear(x_MK[:rows].clone(), weight_NK)
        assert torch.equal(product, F.linear(x_MK, weight_NK)[:rows]), rows
        added = stream_MN[:rows].clone().addmm_(x_MK[:rows].clone(), weight_NK.t())
        assert torch.equal(added, stream_MN.clone().addmm_(x_MK, weight_NK.t())[:rows]), rows


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_on_arm_only_known_bfloat16_is_left_to_onednn(
    machine: str, dtype: torch.dtype, library: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    torch.backends.mkldnn.enabled = True
    choose_library(dtype)
    known = dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert torch.backends.mkldnn.enabled == (machine == "x86_64" or known)
