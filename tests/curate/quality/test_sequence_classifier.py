"""Scores of documents by a checkpoint with a score head: equal to a plain pass, bounded, hostile texts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small_checkpoint import write_checkpoint

from foresail.curate.document import Document, Drop
from foresail.curate.quality.model_step import open_model
from foresail.curate.quality.sequence_classifier import SequenceClassifier
from foresail.curate.recipe import build_curation
from foresail.curate.run.chain import Chain
from foresail.model.attention import PackedAttention
from foresail.model.readouts import scores_at
from foresail.records import Message

TEXTS = ["2 + 2 = 4", "12 * 3 = 36, and 36 / 3 = 12", "4", "7 - 5 = 2 " * 6]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_checkpoint(tmp_path_factory.mktemp("model"), scores=True))


def scores(checkpoint: str, texts: list[str], **settings: Any) -> list[float | str]:
    step = SequenceClassifier(model=checkpoint, device="cpu", into="worth", **settings).open_batch()
    outcomes = step([Document(id=str(n), text=text) for n, text in enumerate(texts)])
    return [each.reason if isinstance(each, Drop) else each.metadata["worth"] for each in outcomes]  # type: ignore[union-attr]


@torch.no_grad()
def plain_score(checkpoint: str, ids: list[int]) -> float:
    opened = open_model(SequenceClassifier(model=checkpoint, device="cpu"))
    attend = PackedAttention(torch.tensor([0, len(ids)]))
    readout = scores_at(torch.tensor([len(ids) - 1]))
    return float(opened.model(torch.tensor(ids), torch.arange(len(ids)), attend, readout).value)


def test_scores_equal_those_of_a_plain_pass_whatever_the_batch(checkpoint: str) -> None:
    opened = open_model(SequenceClassifier(model=checkpoint, device="cpu"))
    expected = [
        plain_score(checkpoint, [*opened.tokenizer.encode(text), opened.tokenizer.eos_ids[0]])
        for text in TEXTS
    ]
    assert len({round(score, 3) for score in expected}) == len(TEXTS)
    for tokens in (64, 16_384):
        assert scores(checkpoint, TEXTS, batch_tokens=tokens) == pytest.approx(expected, abs=1e-4)
    squashed = [1 / (1 + math.exp(-score)) for score in expected]
    assert scores(checkpoint, TEXTS, sigmoid=True) == pytest.approx(squashed, abs=1e-4)


def test_with_a_prompt_the_document_is_an_answer(checkpoint: str) -> None:
    opened = open_model(SequenceClassifier(model=checkpoint, device="cpu"))
    messages = [Message(role="user", content="Sum?"), Message(role="assistant", content=TEXTS[0])]
    ids, _ = opened.tokenizer.encode_conversation(messages)
    (got,) = scores(checkpoint, TEXTS[:1], prompt="Sum?")
    assert got == pytest.approx(plain_score(checkpoint, ids), abs=1e-4)


@pytest.mark.parametrize("text", ["", "\ud800", "<|end|>", "\0" * 40, "ก" * 90, "9" * 50_000])
def test_no_text_breaks_it(checkpoint: str, text: str) -> None:
    for settings in ({}, {"prompt": "Sum?"}):
        before, got, after = scores(checkpoint, [TEXTS[0], text, TEXTS[1]], max_chars=300, **settings)
        assert isinstance(before, float) and isinstance(after, float)
        is_refused = got == "too_short" or (got == "not_encodable" and text == "<|end|>")
        assert is_refused or (isinstance(got, float) and math.isfinite(got))


def test_a_language_model_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="is a language model"):
        SequenceClassifier(model=str(folder), device="cpu").open_batch()


def test_in_a_chain_documents_come_in_batches_and_scores_are_as_alone(checkpoint: str) -> None:
    texts = [f"{n} + {n * 7} = {n * 8}" for n in range(20)]
    alone = scores(checkpoint, texts)
    middle = sorted(alone)[10]
    keys = {"model": checkpoint, "device": "cpu", "into": "worth", "batch_size": 7, "least": middle}
    entry = {"name": "sequence_classifier", **keys}
    recipe = build_curation({"out": "x", "source": [{"path": "in"}], "step": [entry]})
    chain = Chain(recipe.steps)
    assert chain.batch_size == 7
    results = chain.run([Document(id=str(n), text=text) for n, text in enumerate(texts)])
    kept = {int(result.kept[0].id): result.kept[0].metadata["worth"] for result in results if result.kept}
    above = {number: score for number, score in enumerate(alone) if score > middle}
    assert kept.keys() >= above.keys() and len(kept) <= len(above) + 1
    assert {number: kept[number] for number in above} == pytest.approx(above, abs=1e-4)
