"""Inspects a teacher beside the problems: its ids must mean what the student's mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from foresail.check.finding import Finding, note, refusal
from foresail.check.problems import look_at_problems
from foresail.data.mixtures.reader import Reader
from foresail.recipe.stages.distill import Distill
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.teacher import Teacher
from foresail.tokenizer.comparison import vocabulary_difference
from foresail.tokenizer.tokenizer import Tokenizer


def look_at_taught_problems(
    recipe: Distill | Rl, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    if recipe.teacher is not None:
        yield from look_at_teacher(recipe.teacher, reader)
    yield from look_at_problems(recipe, reader, max_context=max_context, largest=largest)


def look_at_teacher(settings: Teacher, reader: Reader | None) -> Iterator[Finding]:
    """What the preflight refuses, such as a missing folder, is not repeated."""
    if reader is None or not Path(settings.path).is_dir():
        return
    try:
        teacher = Tokenizer.load(settings.path)
    except (OSError, ValueError) as error:
        yield refusal(f"teacher.path: {error}")
        return
    if (difference := vocabulary_difference(reader.tokenizer, teacher)) is not None:
        yield refusal(
            f"teacher.path: {settings.path} has another tokenizer than the student: {difference}; choose a teacher "
            "of the same family, or train on its answers as text (foresail sft)"
        )
        return
    yield note(f"teacher {settings.path}: the same {teacher.vocab_size:,} tokens")
