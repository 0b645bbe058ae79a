"""The language of a text by a linear model over hashed n-grams, trained here (`train.py`), shipped as model.npz.

    model = load_model()
    model.guess("Setiap orang berhak atas pendidikan.") -> Guess(language="id", confidence=.99, second="ms", …)

Labels are languages, "other" (a language that the model does not know) and "none" (code, noise).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from foresail.curate.language.features import SCRIPT_WEIGHTS, code_points, script_table
from foresail.curate.language.guess import Guess, guess_from
from foresail.runlog.atomic import write_atomically

SHIPPED = Path(__file__).with_name("model.npz")
CHUNK = 1 << 16  # letters; bounds the memory that a long text takes


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """`weights` is buckets × classes, int8; `scale` makes scores of them. Two classes may have one label."""

    labels: tuple[str, ...]
    weights: np.ndarray
    scale: np.ndarray
    bias: np.ndarray

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.labels) - {"other", "none"}))

    def guess(self, text: str) -> Guess:
        probabilities = self.probabilities(text)
        if probabilities is None:
            return guess_from({})
        by_label: dict[str, float] = {}
        for label, probability in zip(self.labels, probabilities, strict=True):
            by_label[label] = by_label.get(label, 0.0) + float(probability)
        return guess_from(by_label)

    def probabilities(self, text: str) -> np.ndarray | None:
        """By class; nothing for a text without letters."""
        from foresail.curate.language import kernel

        totals, count = np.zeros(len(self.labels), np.int64), 0
        scripts, bits = script_table(), int(self.weights.shape[0]).bit_length() - 1
        for start in range(0, len(text), CHUNK):
            codes = code_points(text[start : start + CHUNK])
            buckets = np.empty(kernel.FEATURES_PER_LETTER * (len(codes) + 2), np.uint32)
            script = kernel.main_script(codes, scripts, SCRIPT_WEIGHTS)
            features = kernel.features(codes, scripts, script, bits, buckets)
            kernel.add_scores(buckets[:features], self.weights, totals)
            count += features
        if count == 0:
            return None
        logits = totals * self.scale / np.sqrt(count) + self.bias
        kernel.probabilities(logits)
        return logits

    def save(self, path: Path) -> None:
        arrays = {
            "labels": np.array(self.labels),
            "weights": self.weights,
            "scale": self.scale,
            "bias": self.bias,
        }

        def write(hidden: Path) -> None:
            with hidden.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)

        write_atomically(path, write)


@cache
def load_model(path: Path = SHIPPED) -> LanguageModel:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return LanguageModel(
                labels=tuple(stored["labels"].tolist()),
                weights=stored["weights"],
                scale=stored["scale"],
                bias=stored["bias"],
            )
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is no language model of `foresail data train-language`: {error}") from None
