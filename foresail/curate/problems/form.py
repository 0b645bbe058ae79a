r"""The step `problem_form`: drops problems that a reward by rule cannot use, by how they are written.

    [[step]]
    name = "problem_form"
    flag = ["guessable"]        # these stay, with metadata `form` = ["guessable"]
    choices = "open"            # options are taken off where the right one can be asked for

Reasons: short, picture, link, mangled; of maths also no_answer, drawing, figure, choice, guessable, several, proof,
solved, restated, no_question. `form_rules.py` says what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.problems.columns import prompt_of
from foresail.curate.problems.form_rules import REASONS, find_faults
from foresail.curate.problems.kind import is_maths
from foresail.curate.problems.open_question import ask_openly
from foresail.curate.problems.wording import Wording
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.problem import problem_of
from foresail.curate.rows.row import with_row
from foresail.curate.step import Outcome, StepFunction
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

FEWEST_LETTERS = 40  # of prose whose language can be told
SURE = 0.8
NO_LANGUAGE = ("none", "other")  # formulas and noise
GuessLanguage = Callable[[str], str]


class ProblemForm(CheckedPart):
    """Drops proofs, multiple choice, missing figures, several questions at once and the like."""

    takes: ClassVar[Holds] = ("problems",)

    flag: Texts = Field((), description="reasons that drop nothing and are written to metadata `form`")
    ignore: Texts = Field((), description="reasons that are not looked for")
    choices: Literal["drop", "open"] = Field(
        "drop", description="open: a multiple-choice problem is asked without its options where it can be"
    )
    language: str = Field(
        "", description="code of the language that prompts are in, such as en; default: any"
    )

    def mistakes(self) -> Iterator[str]:
        if unknown := sorted({*self.flag, *self.ignore} - {*REASONS}):
            yield f"there is no reason {unknown[0]}; reasons are {', '.join(REASONS)}"

    def open(self) -> StepFunction:
        return partial(check_form, settings=self, guess=open_guess() if self.language else None)


def check_form(document: Document, settings: ProblemForm, guess: GuessLanguage | None) -> Outcome:
    row = document.row
    assert row is not None
    problem = problem_of(document.id, row)
    maths = is_maths(document.metadata, row)
    if maths and settings.choices == "open" and (opened := ask_openly(row, problem.answer)) is not None:
        document = with_row(document, opened)
        document = replace(document, metadata={**document.metadata, "choices": "open"})
        row, problem = opened, problem_of(document.id, opened)
    wording = Wording.of(prompt_of(row), problem.answer)
    reasons = frozenset(REASONS) - {*settings.ignore}
    flags = []
    for reason, evidence in find_faults(wording, is_maths=maths, reasons=reasons):
        if reason not in settings.flag:
            return Drop(reason, evidence)
        flags.append(reason)
    if guess is not None and (language := guess(wording.prose)) not in ("", settings.language):
        return Drop("language", language)
    if not flags:
        return document
    return replace(document, metadata={**document.metadata, "form": flags})


def open_guess() -> Callable[[str], str]:
    """The language of a prose of some length, or nothing."""
    from foresail.curate.language.step import open_model

    model: Any = open_model("")

    def guess(prose: str) -> str:
        if sum(map(str.isalpha, prose)) < FEWEST_LETTERS:
            return ""
        guessed = model.guess(prose)
        return guessed.best if guessed.confidence >= SURE and guessed.best not in NO_LANGUAGE else ""

    return guess
