"""A fastText model of the user's, `model = "lid.176.bin"`, run by the package fasttext-predict."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.curate.language.guess import Guess, guess_from

LONGEST = 10_000  # letters that are read of a text


@dataclass(frozen=True)
class FastTextModel:
    model: Any
    languages: tuple[str, ...] = ()  # the package does not say

    def guess(self, text: str) -> Guess:
        """Labels as the model has them, without __label__; "ind_Latn" stays so."""
        line = " ".join(text[:LONGEST].split()).replace("\0", " ").encode("utf-8", "replace").decode()
        if not line:
            return guess_from({})
        labels, chances = self.model.predict(line, k=2)
        return guess_from(
            {
                label.removeprefix("__label__"): min(float(chance), 1.0)
                for label, chance in zip(labels, chances, strict=True)
            }
        )


def load_fasttext(path: Path) -> FastTextModel:
    try:
        package: Any = importlib.import_module("fasttext")
    except ImportError:
        raise ValueError(f"{path}: fastText models need a package: pip install fasttext-predict") from None
    if not path.is_file():
        raise ValueError(f"there is no model {path}; download one, or leave model out for the one shipped")
    try:
        return FastTextModel(package.load_model(str(path)))
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is no fastText model: {error}") from None
