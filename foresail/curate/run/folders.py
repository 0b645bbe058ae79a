"""Where a curation keeps what: folders of phases and of corpus steps, below `work/`.

work/0, work/1-minhash, work/1, work/2-resample, work/2
"""

from __future__ import annotations

import re
from pathlib import Path

from foresail.curate.named_step import NamedStep
from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.ledger import DONE

WORK = "work"


def phase_folder(recipe: CurationRecipe, number: int) -> Path:
    return recipe.out / WORK / str(number)


def corpus_step_folder(recipe: CurationRecipe, number: int, step: NamedStep) -> Path:
    """Of the corpus step before phase `number`."""
    return recipe.out / WORK / f"{number}-{re.sub(r'[^A-Za-z0-9_.-]', '_', step.name)}"


def phase_folders(recipe: CurationRecipe) -> list[Path]:
    """In their order."""
    count = 1 + sum(step.begins_phase for step in recipe.steps)
    return [phase_folder(recipe, number) for number in range(count)]


def last_phase(recipe: CurationRecipe) -> Path:
    return phase_folders(recipe)[-1]


def ledgers(folder: Path) -> list[Path]:
    """Those that are finished, in the order of their pieces."""
    return sorted(folder.glob(f"*{DONE}"))
