"""The step `classify`: quality and domain by a linear classifier, into metadata; drops what is below a threshold.

    [[step]]
    name = "classify"
    model = "quality.npz"              # foresail data train-classifier LABELS.jsonl quality.npz
    rules = [
        {name = "fluency", least = 2.0},
        {name = "fluency", least = 1.5, language = "th"},
        {name = "domain", exclude = ["adverts"]},
    ]

Dropped: low_fluency, domain_adverts. All that the classifier predicts is in the metadata of what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import Outcome, StepFunction
from foresail.recipe.keys import Tables
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

if TYPE_CHECKING:
    from foresail.curate.quality.labels import Head
    from foresail.curate.quality.linear import LinearClassifier, Prediction


class Rule(CheckedPart):
    """Documents below `least` are dropped, or those of the classes `exclude`."""

    name: str = Field(
        description="of a score or a class that the classifier gives, such as fluency or domain"
    )
    least: float | None = Field(None, description="drop documents with less of this score")
    exclude: Texts = Field((), description="drop documents of these classes")
    sure: float = Field(0.5, ge=0, le=1, description="probability from which a class is dropped")
    language: str | None = Field(
        None, description="for this language, instead of the rules of the same name without one"
    )

    def mistakes(self) -> Iterator[str]:
        if (self.least is None) == (not self.exclude):
            yield f"rule {self.name}: write least for a score, or exclude for classes"


class Classify(CheckedPart):
    """Quality and domain by a classifier of `foresail data train-classifier`."""

    takes: ClassVar[Holds] = ANY

    model: str = Field(description="file of the classifier")
    rules: Tables[Rule] = Field((), description="what is dropped; default: nothing")
    language: str = Field("language", description="key of metadata that holds the language")
    prefix: str = Field("", description="before the names in metadata, where two classifiers share some")

    def mistakes(self) -> Iterator[str]:
        if not self.model.strip():
            yield 'model is empty; write model = "quality.npz"'

    def files(self) -> tuple[str, ...]:
        return (self.model,)

    def preflight(self) -> None:
        self.load()

    def open(self) -> StepFunction:
        model = self.load()
        features = model.features()
        return lambda document: judge_prediction(self, document, model.predict(document.text, features))

    def load(self) -> LinearClassifier:
        from foresail.curate.quality.linear import LinearClassifier

        model = LinearClassifier.load(self.model)
        check_rules(self, {head.name: head for head in model.heads})
        return model

    def rules_for(self, language: str) -> list[Rule]:
        """Those of the language, and those without one that it does not replace."""
        own = [rule for rule in self.rules if rule.language == language]
        names = {rule.name for rule in own}
        return own + [rule for rule in self.rules if rule.language is None and rule.name not in names]


def check_rules(settings: Classify, heads: Mapping[str, Head]) -> None:
    """Rules must name what the model predicts."""
    for rule in settings.rules:
        wanted = "score" if rule.least is not None else "class"
        names = sorted(
            name for name, head in heads.items() if (head.kind == "classes") == (wanted == "class")
        )
        if rule.name not in names:
            raise ValueError(f"{settings.model} gives no {wanted} {rule.name}; it gives {names}")
        if other := sorted({*rule.exclude} - {*heads[rule.name].names}):
            raise ValueError(
                f"exclude: {rule.name} has no class {other[0]}; it has {list(heads[rule.name].names)}"
            )


def judge_prediction(
    settings: Classify, document: Document, predictions: Mapping[str, Prediction]
) -> Outcome:
    for rule in settings.rules_for(str(document.metadata.get(settings.language))):
        if (drop := broken(rule, predictions[rule.name])) is not None:
            return drop
    return replace(document, metadata=document.metadata | as_metadata(predictions, settings.prefix))


def broken(rule: Rule, prediction: Prediction) -> Drop | None:
    value, probability = prediction
    if isinstance(value, str):
        if value in rule.exclude and probability >= rule.sure:
            return Drop(
                f"{reason_word(rule.name)}_{reason_word(value)}", f"with probability {probability:.3f}"
            )
    elif rule.least is not None and value < rule.least:
        return Drop(f"low_{reason_word(rule.name)}", f"{value:.4g}, at least {rule.least:g} is required")
    return None


def as_metadata(predictions: Mapping[str, Prediction], prefix: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for name, (value, probability) in predictions.items():
        if isinstance(value, str):
            metadata[f"{prefix}{name}"] = value
            metadata[f"{prefix}{name}_probability"] = round(probability, 4)
        else:
            metadata[f"{prefix}{name}"] = round(value, 4)
    return metadata


def reason_word(name: str) -> str:
    return re.sub(r"\W+", "_", name)
