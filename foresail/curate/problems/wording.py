r"""A problem as the rules of its form read it: the words without code of drawings, and the right answer.

Wording.of("In the figure, … [asy] draw(A--B); [/asy]", "7").words -> "In the figure, …"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from foresail.maths.notation.answer import in_words

LONGEST = 10_000  # characters that rules look at; the longest of 22,000 problems has 5,000

DRAWING = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)|\\begin\{tikzpicture\}.*?(?:\\end\{tikzpicture\}|\Z)", re.DOTALL
)
TABLE = re.compile(
    r"\\begin\{(?:tabular|array|[bpvV]?matrix|align|aligned|alignat|cases|gather|equation|"
    r"eqnarray)\*?\}|\|\s*:?-{2,}"
    r"|\\hline|\\bullet|```|^[ \t]{0,20}\|.*\|[ \t]{0,20}$|\$\$|\\\[",
    re.MULTILINE,
)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\\\[.*?\\\]|\\\(.*?\\\)", re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.?!:])[\"')\]*]*\s+|\n+")


@dataclass(frozen=True)
class Wording:
    """`text` is what is asked, `answer` the right answer."""

    text: str
    answer: str

    @classmethod
    def of(cls, text: str, answer: str) -> Wording:
        return cls(text[:LONGEST], answer.strip()[:LONGEST])

    @cached_property
    def words(self) -> str:
        """Without the code of drawings."""
        return DRAWING.sub(" ", self.text)

    @cached_property
    def prose(self) -> str:
        """Without drawings and formulas: "Find $x$." -> "Find _." """
        return FORMULA.sub("_", self.words)

    @cached_property
    def sentences(self) -> list[str]:
        return [part.strip() for part in SENTENCE_END.split(self.prose) if part.strip()]

    @cached_property
    def answer_words(self) -> str:
        return in_words(self.answer).strip("{}() .")

    @property
    def has_drawing(self) -> bool:
        return self.words != self.text

    @cached_property
    def has_table(self) -> bool:
        """A table or a formula of its own line, which "shown below" may mean."""
        return TABLE.search(self.words) is not None
