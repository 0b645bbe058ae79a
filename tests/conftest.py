"""What the tests of several rooms share: one tiny checkpoint, trained once a session in a few seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from foresail.train.sft import run_sft
from tiny_world import make_tokenizer, sft_recipe, write_conversations


@pytest.fixture(scope="session")
def tiny_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer().save(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_conversations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_conversations(tmp_path_factory.mktemp("data") / "sft.jsonl")


@pytest.fixture(scope="session")
def tiny_sft_run(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of the SFT run that made the tiny checkpoint. Read it, never write into it."""
    outcome = run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path_factory.mktemp("runs")))
    return outcome.run


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_sft_run: Path) -> Path:
    return tiny_sft_run / "checkpoints" / "step_60"
