"""A linear classifier with several heads over hashed features, in one file.

    model = LinearClassifier.load("quality.npz")
    model.predict("Photosynthesis is …") -> {"fluency": Prediction(4.2), "domain": Prediction("science", .91)}

Levels: sigmoid(w·x + b_k) is the probability of more than level k, their sum is the expected level. Scores:
sigmoid(w·x + b) is the place between the bounds of the labels. Classes: softmax.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foresail.curate.quality.labels import Head
from foresail.curate.quality.ngrams import Features, NgramFeatures
from foresail.rollout.drafts.compiled import compiled
from foresail.runlog.atomic import write_atomically

FORMAT = 1


class Prediction(NamedTuple):
    """A level or score; or a class and its probability."""

    value: float | str
    probability: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearClassifier:
    """`weights_FC` has a row for every feature, a column for every score and class."""

    heads: tuple[Head, ...]
    bits: int
    max_chars: int
    weights_FC: np.ndarray
    biases_B: np.ndarray

    def predict(self, text: str, features: NgramFeatures | None = None) -> dict[str, Prediction]:
        source = features or self.features()
        return self.predict_features(source.of(text))

    def features(self) -> NgramFeatures:
        return NgramFeatures(bits=self.bits, max_chars=self.max_chars)

    def predict_features(self, features: Features) -> dict[str, Prediction]:
        raw_C = weighted_sum(features.indices, features.values, self.weights_FC)
        predictions, column, bias = {}, 0, 0
        for head in self.heads:
            own_C = raw_C[column : column + head.columns]
            own_B = self.biases_B[bias : bias + head.biases]
            predictions[head.name] = predict_head(head, own_C, own_B)
            column, bias = column + head.columns, bias + head.biases
        return predictions

    def save(self, file: Path) -> None:
        about = {
            "format": FORMAT,
            "bits": self.bits,
            "max_chars": self.max_chars,
            "heads": [asdict(head) for head in self.heads],
        }
        used = np.flatnonzero(np.any(self.weights_FC != 0, axis=1)).astype(np.int32)

        def write(hidden: Path) -> None:
            with hidden.open("wb") as opened:
                np.savez_compressed(
                    opened,
                    about=np.frombuffer(json.dumps(about).encode(), np.uint8),
                    used=np.diff(used, prepend=np.int32(0)).astype(np.int32),
                    weights=self.weights_FC[used].astype(np.float16),
                    biases=self.biases_B.astype(np.float32),
                )

        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, write)

    @classmethod
    def load(cls, file: str | Path) -> LinearClassifier:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                about = json.loads(arrays["about"].tobytes())
                if about["format"] != FORMAT:
                    raise ValueError(f"format {about['format']}")
                heads = tuple(Head(**{**head, "names": tuple(head["names"])}) for head in about["heads"])
                weights_FC = np.zeros((1 << about["bits"], sum(head.columns for head in heads)), np.float32)
                weights_FC[np.cumsum(arrays["used"])] = arrays["weights"]
                return cls(
                    heads=heads,
                    bits=about["bits"],
                    max_chars=about["max_chars"],
                    weights_FC=weights_FC,
                    biases_B=arrays["biases"],
                )
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no classifier {file}; make it: foresail data train-classifier LABELS.jsonl {file}"
            ) from None
        except Exception as error:  # numpy and zipfile raise whatever the bytes lead to
            raise ValueError(
                f"{file} is no classifier of this version ({error}); make it again with foresail data "
                "train-classifier"
            ) from error


@compiled
def weighted_sum(indices: np.ndarray, values: np.ndarray, weights_FC: np.ndarray) -> np.ndarray:
    sums_C = np.zeros(weights_FC.shape[1], np.float64)
    for place in range(len(indices)):
        for column in range(weights_FC.shape[1]):
            sums_C[column] += values[place] * weights_FC[indices[place], column]
    return sums_C


def predict_head(head: Head, raw_C: np.ndarray, biases_B: np.ndarray) -> Prediction:
    if head.kind != "classes":
        with np.errstate(over="ignore"):
            above = float(np.sum(1.0 / (1.0 + np.exp(-(raw_C[0] + biases_B)))))
        return Prediction(head.low + above * (1.0 if head.kind == "levels" else head.high - head.low))
    logits_C = raw_C + biases_B
    weights_C = np.exp(logits_C - logits_C.max())
    best = int(weights_C.argmax())
    return Prediction(head.names[best], float(weights_C[best] / weights_C.sum()))
