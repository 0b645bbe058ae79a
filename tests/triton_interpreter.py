"""Import this before the kernels. Without a GPU Triton's interpreter runs them; here it prepares itself once.

As it comes, it maps `triton.language` to numpy anew at every launch and at every call of a device function
(`tl.sum` is one), which takes longer than the work of a small kernel.
"""

from __future__ import annotations

import os
from types import FunctionType
from typing import Any

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is first imported
triton = pytest.importorskip("triton", reason="the kernels need triton")

import triton.language as tl  # noqa: E402, F401  for tests with kernels of their own
from triton.runtime import interpreter  # noqa: E402

patch_language, patch_tensor = interpreter._patch_lang, interpreter._patch_lang_tensor
prepared: set[int] = set()  # modules with kernels, by their globals


class Kept:
    """The changes of a launch, which stay: nothing is compiled in this process."""

    def restore(self) -> None:
        pass


def patch_language_once(function: FunctionType) -> Kept:
    if id(function.__globals__) not in prepared:
        prepared.add(id(function.__globals__))
        patch_language(function)
    return Kept()


def patch_tensor_and_bounds(tensor: type, scope: Any) -> None:
    """Triton 3.6 reads the bounds of a loop as int(array of one number); numpy 2.4 refuses that."""
    patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


if not torch.cuda.is_available():
    interpreter._patch_lang = patch_language_once
    interpreter._patch_lang_tensor = patch_tensor_and_bounds
