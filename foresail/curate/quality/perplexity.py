"""The step `perplexity`: how unlikely a checkpoint finds a text, in nats a token and nats a byte.

    [[step]]
    name = "perplexity"
    model = "checkpoints/small"
    most = 6.0                     # nats per token; lists and broken text have more, spam often less than `least`

Metadata: perplexity (exp of nats per token), nats_per_token, nats_per_byte. Dropped: low_perplexity,
high_perplexity. To drop by rank instead, let the step `quantiles` follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.quality.model_step import BatchFunction, ModelStep, OpenModel, below_or_above, open_model
from foresail.curate.step import Outcome

if TYPE_CHECKING:
    from foresail.records import TrainSequence


class Perplexity(ModelStep):
    """Nats per token and per byte by a language model."""

    by: Literal["nats_per_token", "nats_per_byte"] = Field(
        "nats_per_token", description="what `least` and `most` bound"
    )
    least: float | None = Field(None, description="documents below are dropped")
    most: float | None = Field(None, description="documents above are dropped")
    window: int = Field(1024, ge=2, description="tokens that the model sees at once, its context at most")
    overlap: float = Field(
        0.25, ge=0, lt=1, description="share of a window that was counted in the one before"
    )

    def mistakes(self) -> Iterator[str]:
        if self.least is not None and self.most is not None and self.least > self.most:
            yield f"least {self.least:g} is above most {self.most:g}"

    def open_batch(self) -> BatchFunction:
        opened = open_model(self)
        return lambda documents: measure_documents(self, opened, documents)


class TokenSpan(NamedTuple):
    """Tokens `start` to `stop` of document `number`; those before `counted` were counted in another span."""

    number: int
    start: int
    counted: int
    stop: int


def cut_spans(number: int, length: int, window: int, overlap: float) -> Iterator[TokenSpan]:
    """cut_spans(0, 10, 6, 0.5) -> 0 to 6, 3 to 9 counted from 6, 4 to 10 counted from 9.

    The first token of a document never counts, nor does that of a window, for the model has seen nothing before it.
    """
    step = max(1, min(window - 1, window - int(window * overlap)))
    counted = 1
    for stop in (*range(window, length, step), length):
        if stop > counted:
            yield TokenSpan(number, max(0, stop - window), counted, stop)
            counted = stop


def measure_documents(
    settings: Perplexity, opened: OpenModel, documents: Sequence[Document]
) -> Sequence[Outcome]:
    encoded = opened.encode(documents, settings.max_chars)
    ids = [[] if isinstance(own, Drop) else own for own in encoded]
    window = min(settings.window, opened.context, settings.batch_tokens)
    spans = [
        span
        for number, own in enumerate(ids)
        for span in cut_spans(number, len(own), window, settings.overlap)
    ]
    nats = [0.0] * len(documents)
    for span, own in zip(spans, count_nats(opened, ids, spans, settings.batch_tokens), strict=True):
        nats[span.number] += own
    return [
        own if isinstance(own, Drop) else judge_nats(settings, document, total, len(own))
        for document, total, own in zip(documents, nats, encoded, strict=True)
    ]


def count_nats(
    opened: OpenModel, ids: Sequence[Sequence[int]], spans: Sequence[TokenSpan], batch_tokens: int
) -> list[float]:
    """The sum over each span's counted tokens."""
    import torch

    from foresail.data.packing import pack_batch, plan_batches
    from foresail.model.packed import token_logprobs

    rows = [to_row(ids[span.number], span) for span in spans]
    nats = [0.0] * len(spans)
    with torch.no_grad():
        for segments in plan_batches(rows, max_tokens=batch_tokens):
            batch = pack_batch(rows, [1.0] * len(rows), segments, opened.model.device)
            logprobs_M, _ = token_logprobs(opened.model, batch)
            sums_S = torch.zeros(len(segments), dtype=torch.float64, device=logprobs_M.device)
            sums_S.index_add_(0, batch.sequence_M, -logprobs_M.double())
            for segment, total in zip(segments, sums_S.tolist(), strict=True):
                nats[segment.number] = total
    return nats


def to_row(ids: Sequence[int], span: TokenSpan) -> TrainSequence:
    from foresail.records import TrainSequence

    mask = [0] * (span.counted - span.start) + [1] * (span.stop - span.counted)
    return TrainSequence(ids=[*ids[span.start : span.stop]], loss_mask=mask)


def judge_nats(settings: Perplexity, document: Document, nats: float, tokens: int) -> Outcome:
    if tokens < 2:
        return Drop("too_short", f"{tokens} tokens; two at least have a perplexity")
    if not math.isfinite(nats):
        return Drop("failed", f"the model gives {nats}")
    text = document.text
    per_token = nats / (tokens - 1)
    # of a text that was read in part, tokens stand for as many bytes as in the part
    size = min(len(text), settings.max_chars) / len(text) * len(text.encode("utf-8", "replace"))
    per_byte = nats / size
    measured = {"nats_per_token": per_token, "nats_per_byte": per_byte}
    if (
        drop := below_or_above(measured[settings.by], settings.least, settings.most, "perplexity")
    ) is not None:
        return drop
    numbers = {"perplexity": math.exp(min(per_token, 700.0)), **measured}
    metadata = document.metadata | {name: float(f"{number:.6g}") for name, number in numbers.items()}
    return replace(document, metadata=metadata)
