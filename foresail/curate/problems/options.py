r"""The options of a multiple-choice problem.

find_options("How many? (A) 5 (B) 6 (C) 7") -> Options(start=10, texts={"A": "5", "B": "6", "C": "7"})
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LETTERS = "ABCDEFGH"
LEAST = 3  # options; (A) and (B) alone may be two points
FARTHEST = 600  # characters from one option to the next
OPENING = r"(?:\\(?:text|math)?(?:bf|rm|it|textbf|textrm|textit)?\s*\{+\s*|\{\\(?:bf|rm)\s+|\*\*)?"
# (A), \textbf{(A)}, \mathrm{(A) \ }, **A)**, A), A., A:
LABEL = re.compile(
    r"(?<![\w\\^_)])(?:"
    + OPENING
    + r"\(([A-H])\)|"
    + r"(?:(?<=\s)|(?<=\A)|(?<=[$?.:;]))"
    + OPENING
    + r"([A-H])(?:\s*[.)](?=\s|\$|\\|\}|\*|-?\d)|:(?=\s)))"
)
WRAPPING = re.compile(
    r"^(?:[\s}~$]|\\[ ,;:!]|\\q?quad|\*\*)+"
    r"|(?:[\s{~,;&]|\\[ ,;:!\\]|\\q?quad|\\(?:text|math)(?:bf|rm|it)|\*\*)+$"
)
WHOLE_FORMULA = re.compile(r"\\\((.*)\\\)")
DOLLAR_ENDS = re.compile(r"^\$+|\$+$")


@dataclass(frozen=True)
class Options:
    """`start` and `end`: where the options stand in the text."""

    start: int
    end: int
    texts: dict[str, str]


def find_options(text: str) -> Options | None:
    """The last run of options, from A on."""
    best: Options | None = None
    for chain in chains([*LABEL.finditer(text)]):
        if len(chain) >= LEAST and "?" not in (options := read_options(text, chain)).texts[last_of(chain)]:
            best = options
    return best


def last_of(chain: list[re.Match[str]]) -> str:
    return LETTERS[len(chain) - 1]


def chains(labels: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Runs A, B, C … of labels that follow each other."""
    chain: list[re.Match[str]] = []
    for label in labels:
        letter = label[1] or label[2]
        if chain and letter == LETTERS[min(len(chain), 7)] and label.start() - chain[-1].end() <= FARTHEST:
            chain.append(label)
            continue
        if letter == "A":
            yield chain
            chain = [label]
    yield chain


def read_options(text: str, chain: list[re.Match[str]]) -> Options:
    ends = [label.start() for label in chain[1:]]
    last = chain[-1].end()
    line_end = re.search(r"\n\s*\n|\n(?=[A-Z])", text[last:])
    ends.append(last + line_end.start() if line_end else len(text))
    start = chain[0].start()
    opened = text[:start].rstrip().endswith("$") and text[:start].count("$") % 2 == 1
    texts = {
        LETTERS[number]: clean(text[label.end() : end])
        for number, (label, end) in enumerate(zip(chain, ends, strict=True))
    }
    return Options(text[:start].rstrip().rfind("$") if opened else start, ends[-1], texts)


def clean(option: str) -> str:
    """clean(r"}\\ 5\\qquad") -> "5"."""
    option = WRAPPING.sub("", option.strip())
    if option.count("$") % 2:
        option = DOLLAR_ENDS.sub("", option)
    while option.endswith("}") and option.count("}") > option.count("{"):
        option = WRAPPING.sub("", option[:-1])
    whole = WHOLE_FORMULA.fullmatch(option.strip())
    return (whole[1] if whole else option).strip()
