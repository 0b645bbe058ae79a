"""Which elements of a page may be formulas or boxes of code, found once for all that walk over it.

marks = find_marks(page); keep_code(page, content, marks); render(page, marks=marks)
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.code.line_elements import BOX_HINTS
from foresail.curate.extract.render.hints import Hints
from foresail.curate.extract.render.maths.formula import HINTS, FormulaReader


@dataclass(frozen=True, slots=True)
class Marks:
    formulas: FormulaReader
    boxes: set[int]


def find_marks(page: Page) -> Marks:
    hints = Hints(page)
    return Marks(FormulaReader(page, hints.nodes(*HINTS)), hints.nodes(*BOX_HINTS))
