"""Writes mixtures of token folders, as `[[corpus]]` tables for a stage of `foresail pretrain`.

weigh(mixture, {"maths": 30_000, "web": 800_000, "books": 200_000}) -> weights .4, .48, .12
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.curate.mixture import Mixture
from foresail.curate.recipe import CurationRecipe
from foresail.recipe.tables.corpus import read_manifest
from foresail.recipe.tables.mixture_file import CorpusEntry, mixture_text
from foresail.runlog.atomic import write_text

MIXTURES = "mixtures"


@dataclass(frozen=True)
class Available:
    """A corpus that a mixture can take."""

    source: str
    tokens: int


def write_mixtures(recipe: CurationRecipe, written: Mapping[str, Any]) -> dict[str, Any]:
    """`written`: documents and tokens by sink -> shares by mixture, and named corpora without text."""
    mixtures = {}
    for mixture in recipe.curation.mixture:
        available = available_corpora(recipe.out, mixture, written[mixture.sink]["tokens"])
        entries = [*weigh(mixture, available)]
        if not entries:
            raise ValueError(
                f"mixture {mixture.name} has no corpus: no document has reached {recipe.out / mixture.sink}; "
                "foresail data why RECIPE ID says where one was dropped"
            )
        file = recipe.out / MIXTURES / f"{mixture.name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, mixture_text(entries, f"Mixture {mixture.name} of {recipe.out}", file))
        missing = [corpus.name for corpus in mixture.corpora if corpus.name not in available]
        mixtures[f"{MIXTURES}/{file.name}"] = {
            "shares": {entry.name: round(entry.weight, 6) for entry in entries},
            "missing": missing,
        }
    return mixtures


def available_corpora(out: Path, mixture: Mixture, tokens: Mapping[str, int]) -> dict[str, Available]:
    """Folders of the sink by name, and corpora from elsewhere."""
    corpora = {
        name or mixture.sink: Available(str(out / mixture.sink / name), count)
        for name, count in tokens.items()
        if (name or mixture.sink) not in mixture.exclude and count
    }
    for corpus in mixture.corpora:
        if corpus.source is not None:
            corpora[corpus.name] = Available(corpus.source, read_manifest(corpus.source).tokens)
    return corpora


def weigh(mixture: Mixture, available: Mapping[str, Available]) -> Iterator[CorpusEntry]:
    """Shares as written; what is left over is shared by tokens. Of a missing corpus, the others take the share."""
    settings = {corpus.name: corpus for corpus in mixture.corpora}
    fixed = {
        name: share
        for name, corpus in settings.items()
        if name in available and (share := corpus.share) is not None
    }
    others = {name: corpus.tokens for name, corpus in available.items() if name not in fixed}
    rest = 1 - sum(corpus.share or 0.0 for corpus in mixture.corpora)
    for name, corpus in available.items():
        share = fixed.get(name, rest * corpus.tokens / max(1, sum(others.values())))
        if share > 0:
            epochs = settings[name].epochs if name in settings else None
            yield CorpusEntry(corpus.source, share, name, epochs, corpus.tokens)
