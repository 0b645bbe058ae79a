"""What a curation needs, checked before its first document: else a missing file ends it after hours.

A step may have a method `preflight`, which raises ValueError or OSError if a model or a file is missing or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from foresail.curate.mixture import Mixture
from foresail.curate.recipe import CurationRecipe
from foresail.curate.sink import Sink
from foresail.recipe.reading.load import complaint
from foresail.recipe.tables.corpus import read_manifest


def preflight(recipe: CurationRecipe) -> None:
    """One error with all that is missing."""
    mistakes = [
        f"{place}: {mistake}" for place, check in checks(recipe) if (mistake := mistake_of(check)) is not None
    ]
    if mistakes:
        raise complaint(f"the curation {recipe.out} cannot begin", mistakes)


def checks(recipe: CurationRecipe) -> Iterator[tuple[str, Callable[[], None]]]:
    for step in recipe.steps:
        if callable(check := getattr(step.settings, "preflight", None)):
            yield f"step#{step.number} ({step.name})", check
    for sink in recipe.curation.sink:
        yield f"sink {sink.name}", partial(check_sink, sink)
    for mixture in recipe.curation.mixture:
        yield f"mixture {mixture.name}", partial(check_mixture, mixture)


def mistake_of(check: Callable[[], None]) -> str | None:
    try:
        check()
    except (ValueError, OSError) as error:
        return str(error)
    return None


def check_sink(sink: Sink) -> None:
    if sink.tokenizer is not None:
        from foresail.tokenizer.tokenizer import Tokenizer

        Tokenizer.load(sink.tokenizer)


def check_mixture(mixture: Mixture) -> None:
    for corpus in mixture.corpora:
        if corpus.source is not None:
            read_manifest(corpus.source)
