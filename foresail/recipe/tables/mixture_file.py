"""A mixture of corpora in a file of its own, as `foresail data curate` writes it.

    [[corpus]]
    source = "curated/mimo/tokens/maths"
    weight = 0.4

In a pretraining recipe: data = "curated/mimo/mixtures/stage-2.toml". The resolved recipe of a run has the corpora
themselves, so that a later curation changes no run that has begun.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIX = ".toml"
NO_NAME = r"[^\w-]"  # characters that names in metrics do not have


@dataclass(frozen=True)
class CorpusEntry:
    source: str
    weight: float
    name: str
    epochs: int | None
    tokens: int


def mixture_text(entries: Sequence[CorpusEntry], title: str, file: Path) -> str:
    lines = [f"# {title}.", f"# In a stage of a pretraining recipe: data = {json.dumps(str(file))}"]
    for entry in entries:
        lines += [
            "",
            "[[corpus]]",
            f"source = {json.dumps(entry.source, ensure_ascii=False)}  # {entry.tokens:,} tokens",
            f"name = {json.dumps(re.sub(NO_NAME, '_', entry.name), ensure_ascii=False)}",
            f"weight = {entry.weight:.6g}",
        ]
        if entry.epochs is not None:
            lines.append(f"epochs = {entry.epochs}")
    return "\n".join(lines) + "\n"


def read_mixture(value: Any) -> Any:
    """The tables [[corpus]] of a file; anything but a path that ends in .toml stays as it is."""
    if not isinstance(value, str) or not value.endswith(SUFFIX):
        return value
    try:
        table = tomllib.loads(Path(value).read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read the mixture {value}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{value} is not TOML: {error}") from None
    corpora = table.pop("corpus", None)
    if table or not isinstance(corpora, list) or not corpora:
        raise ValueError(
            f"{value} is no mixture: it must have tables [[corpus]] with source, and nothing else"
        )
    return corpora
