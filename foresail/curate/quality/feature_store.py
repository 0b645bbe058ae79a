"""Features of many texts in files, mapped into memory: training reads them again and again, whatever their size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from foresail.curate.quality.ngrams import Features, NgramFeatures


class FeatureStore:
    def __init__(self, indices: np.ndarray, values: np.ndarray, ends: np.ndarray) -> None:
        self.indices, self.values, self.ends = indices, values, ends

    def __len__(self) -> int:
        return len(self.ends)

    def of(self, number: int) -> Features:
        start = self.ends[number - 1] if number else 0
        own = slice(start, self.ends[number])
        return Features(self.indices[own], self.values[own])


def store_features(texts: Iterable[str], features: NgramFeatures, folder: Path) -> FeatureStore:
    """One after the other to two files in `folder`."""
    paths = folder / "indices", folder / "values"
    ends, total = [], 0
    with paths[0].open("wb") as indices, paths[1].open("wb") as values:
        for text in texts:
            own = features.of(text)
            own.indices.astype(np.int32).tofile(indices)
            own.values.tofile(values)
            total += len(own.indices)
            ends.append(total)
    if not ends:
        raise ValueError("there is no text to learn from")
    return FeatureStore(
        np.memmap(paths[0], np.int32, mode="r"),
        np.memmap(paths[1], np.float32, mode="r"),
        np.array(ends, np.int64),
    )
