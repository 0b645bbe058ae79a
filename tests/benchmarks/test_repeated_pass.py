"""What is repeated needs a GPU; that there is none is told at once."""

from __future__ import annotations

import pytest
import repeated_pass
import torch


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["repeated_pass.py", "--processes", "1", "--seconds", "0"])
    with pytest.raises(SystemExit, match="PyTorch sees no CUDA device: run it where there is one"):
        repeated_pass.main()
