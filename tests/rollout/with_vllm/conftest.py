"""Tests against the real vLLM, on a CPU in float32: `make test-vllm`. Elsewhere they skip."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WITHOUT = pytest.mark.skip(
    reason="vLLM is not installed here; make test-vllm runs this in its own environment"
)


@pytest.fixture(scope="session")
def start(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint that runs learn even digits from."""
    from even_digits import train_start

    return train_start(tiny_tokenizer, tiny_conversations, tmp_path_factory.mktemp("start"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("vllm")
            if find_spec("vllm") is None:
                item.add_marker(WITHOUT)
