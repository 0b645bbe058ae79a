"""The step `sequence_classifier`: a score of each document by a reward model of ours, or any with one score.

    [[step]]
    name = "sequence_classifier"
    model = "runs/judge/checkpoints/step_200"
    into = "education"
    least = 0.5

Documents are texts, as in pretraining; with `prompt` each is the assistant's answer to that prompt, which is how
`foresail reward-model` trains. Dropped: low_education, high_education.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.quality.model_step import (
    BatchFunction,
    ModelStep,
    OpenModel,
    below_or_above,
    encode_each,
    open_model,
    printable,
)
from foresail.curate.quality.text_windows import windows
from foresail.curate.step import Outcome


class SequenceClassifier(ModelStep):
    """A score by a checkpoint with a score head."""

    into: str = Field("score", description="key of metadata")
    least: float | None = Field(None, description="documents below are dropped")
    most: float | None = Field(None, description="documents above are dropped")
    prompt: str | None = Field(
        None, description="what the user asks, to which the document is the answer; default: a text alone"
    )
    sigmoid: bool = Field(False, description="write 1 / (1 + exp(-score)) instead of the score")

    def mistakes(self) -> Iterator[str]:
        if self.least is not None and self.most is not None and self.least > self.most:
            yield f"least {self.least:g} is above most {self.most:g}"

    @property
    def scores(self) -> bool:
        return True

    def open_batch(self) -> BatchFunction:
        opened = open_model(self)
        return lambda documents: score_documents(self, opened, documents)


def score_documents(
    settings: SequenceClassifier, opened: OpenModel, documents: Sequence[Document]
) -> Sequence[Outcome]:
    from foresail.rewards.scoring import score_answers

    encoded = encode(settings, opened, documents)
    outcomes: list[Outcome] = [
        own if isinstance(own, Drop) else Drop("too_short", f"{len(own)} tokens; two at least have a score")
        for own in encoded
    ]
    longest = min(opened.context, settings.batch_tokens)
    rows = {
        # the end is kept, where the score is read
        number: own if len(own) <= longest else [*own[: longest - 1], own[-1]]
        for number, own in enumerate(encoded)
        if not isinstance(own, Drop) and len(own) >= 2
    }
    scores = score_answers(
        opened.model, [*rows.values()], starts=[1] * len(rows), max_tokens=settings.batch_tokens
    )
    for number, score in zip(rows, scores, strict=True):
        outcomes[number] = judge_score(settings, documents[number], score)
    return outcomes


def encode(
    settings: SequenceClassifier, opened: OpenModel, documents: Sequence[Document]
) -> Sequence[list[int] | Drop]:
    if settings.prompt is None:
        end = opened.encoder.end
        return [
            own if isinstance(own, Drop) else [*own, end]
            for own in opened.encode(documents, settings.max_chars)
        ]
    texts = [printable(windows(document.text, settings.max_chars)) for document in documents]
    return encode_each(partial(encode_answers, settings.prompt, opened), texts)


def encode_answers(prompt: str, opened: OpenModel, texts: Sequence[str]) -> list[list[int]]:
    from foresail.data.preferences.scored_pairs import end_with_answer
    from foresail.records import Message, TrainSequence

    encoded = []
    for text in texts:
        conversation = [Message(role="user", content=prompt), Message(role="assistant", content=text)]
        ids, mask = opened.tokenizer.encode_conversation(conversation)
        encoded.append([*end_with_answer(TrainSequence(ids=ids, loss_mask=mask)).ids])
    return encoded


def judge_score(settings: SequenceClassifier, document: Document, score: float) -> Outcome:
    if not math.isfinite(score):
        return Drop("failed", f"the model gives {score}")
    if settings.sigmoid:
        score = 1 / (1 + math.exp(-score)) if score > -700 else 0.0
    if (drop := below_or_above(score, settings.least, settings.most, settings.into)) is not None:
        return drop
    return replace(document, metadata=document.metadata | {settings.into: float(f"{score:.6g}")})
