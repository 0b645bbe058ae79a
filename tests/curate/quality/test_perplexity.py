"""Perplexity: equal to a plain pass, whatever the batches; windows of long texts; bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small_checkpoint import write_checkpoint

from foresail.curate.document import Document, Drop
from foresail.curate.quality.model_step import open_model
from foresail.curate.quality.perplexity import Perplexity, cut_spans
from foresail.curate.recipe import build_curation
from foresail.model.attention import PackedAttention
from foresail.model.readouts import logits
from foresail.recipe.reading.load import RecipeError

TEXTS = ["2 + 2 = 4", "12 * 3 = 36, and 36 / 3 = 12", "4", "7 - 5 = 2 " * 6]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_checkpoint(tmp_path_factory.mktemp("model")))


def documents(texts: list[str]) -> list[Document]:
    return [Document(id=str(number), text=text) for number, text in enumerate(texts)]


def measured(checkpoint: str, texts: list[str], **settings: Any) -> list[dict[str, float] | str]:
    outcomes = Perplexity(model=checkpoint, device="cpu", **settings).open_batch()(documents(texts))
    return [each.reason if isinstance(each, Drop) else each.metadata for each in outcomes]  # type: ignore[union-attr]


@torch.no_grad()
def plain_nats(checkpoint: str, text: str, first: int = 0, last: int | None = None) -> list[float]:
    """Of each token but the first, by a pass over these tokens alone."""
    opened = open_model(Perplexity(model=checkpoint, device="cpu"))
    (encoded,) = opened.encode(documents([text]), 10_000)
    assert isinstance(encoded, list)
    ids = torch.tensor(encoded[first:last])
    starts = torch.tensor([0, len(ids)])
    rows = opened.model(ids, torch.arange(len(ids)), PackedAttention(starts), logits).value.log_softmax(-1)
    return [-float(rows[place, ids[place + 1]]) for place in range(len(ids) - 1)]


def test_nats_equal_those_of_a_plain_pass(checkpoint: str) -> None:
    for text, got in zip(TEXTS, measured(checkpoint, TEXTS), strict=True):
        nats = plain_nats(checkpoint, text)
        if not nats:
            assert got == "too_short"
            continue
        assert isinstance(got, dict)
        assert got["nats_per_token"] == pytest.approx(sum(nats) / len(nats), rel=1e-4)
        assert got["nats_per_byte"] == pytest.approx(sum(nats) / len(text), rel=1e-4)
        assert got["perplexity"] == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-3)


def test_batches_change_nothing(checkpoint: str) -> None:
    one = [measured(checkpoint, [text])[0] for text in TEXTS]
    for tokens in (60, 16_384):
        for alone, together in zip(
            one, measured(checkpoint, TEXTS, batch_tokens=tokens, window=60), strict=True
        ):
            assert together == (alone if isinstance(alone, str) else pytest.approx(alone, rel=1e-4))


def test_every_token_of_a_long_text_counts_once_after_its_window(checkpoint: str) -> None:
    text = "12 + 5 = 17 and " * 3
    (got,) = measured(checkpoint, [text], window=16, overlap=0.25)
    whole = len(plain_nats(checkpoint, text)) + 1
    nats = []
    for span in cut_spans(0, whole, 16, 0.25):
        nats += plain_nats(checkpoint, text, span.start, span.stop)[span.counted - span.start - 1 :]
    assert len(nats) == whole - 1 > 20
    assert isinstance(got, dict) and got["nats_per_token"] == pytest.approx(sum(nats) / len(nats), rel=1e-4)


def test_spans_count_each_token_but_the_first_once() -> None:
    for length in range(40):
        for window in range(2, 12):
            for overlap in (0.0, 0.3, 0.99):
                counted = []
                for span in cut_spans(0, length, window, overlap):
                    assert 0 <= span.start < span.counted < span.stop <= length
                    assert span.stop - span.start <= window
                    counted += range(span.counted, span.stop)
                assert counted == [*range(1, length)]


def test_bounds_drop(checkpoint: str) -> None:
    free = measured(checkpoint, TEXTS)
    middle = sorted(each["nats_per_byte"] for each in free if isinstance(each, dict))[1]
    low = measured(checkpoint, TEXTS, by="nats_per_byte", least=middle * (1 - 1e-5))
    high = measured(checkpoint, TEXTS, by="nats_per_byte", most=middle * (1 + 1e-5))
    assert low.count("low_perplexity") == 1 and high.count("high_perplexity") == 1


@pytest.mark.parametrize(
    "text", ["", " ", "\ud800\udfff", "<|end|><|user|>", "\0" * 40, "ก" * 90, "9" * 50_000]
)
def test_no_text_breaks_it(checkpoint: str, text: str) -> None:
    before, got, after = measured(checkpoint, [TEXTS[0], text, TEXTS[1]], window=32, max_chars=300)
    assert isinstance(before, dict) and isinstance(after, dict)
    assert got == "too_short" or (isinstance(got, dict) and math.isfinite(got["nats_per_byte"]))


def test_texts_that_the_tokenizer_cannot_write_are_dropped(tmp_path: Path) -> None:
    folder = str(write_checkpoint(tmp_path, digits_only=True))
    before, got, after = measured(folder, ["2+2-4", "ก", "12+34"])
    assert isinstance(before, dict) and got == "not_encodable" and isinstance(after, dict)


def test_wrong_settings_are_refused(checkpoint: str, tmp_path: Path) -> None:
    entry = {"name": "perplexity", "model": checkpoint, "least": 3.0, "most": 2.0}
    with pytest.raises(RecipeError, match="least 3 is above most 2"):
        build_curation({"out": "x", "source": [{"path": "in"}], "step": [entry]})
    scoring = write_checkpoint(tmp_path / "scores", scores=True)
    with pytest.raises(ValueError, match="is a reward model"):
        Perplexity(model=str(scoring), device="cpu").open_batch()
