"""A run that meets a limit of the machine ends in one error that names the key or the limit to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from foresail.recipe.reading.out_of_files import explaining_files
from foresail.recipe.reading.out_of_memory import explaining_memory
from foresail.recipe.stages.stage import Stage


@contextmanager
def explaining_limits(recipe: Stage) -> Iterator[None]:
    """Around a run: for memory and for open files."""
    with explaining_files(recipe), explaining_memory(recipe):
        yield
