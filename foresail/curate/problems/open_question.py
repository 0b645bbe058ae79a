r"""A multiple-choice problem asked without its options, where the right option alone answers it.

ask_openly({"problem": "What is $2 + 3$? (A) 4 (B) 5 (C) 6", "answer": "B"}, "B")
    -> {"problem": "What is $2 + 3$?", "answer": "5"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from foresail.curate.problems.columns import prompt_of, with_answer, with_prompt
from foresail.curate.problems.options import Options, find_options
from foresail.maths.notation.answer import in_words, read
from foresail.maths.notation.tree import walk
from foresail.maths.verdict import grade

LONGEST_TEXT = 20_000
# what only makes sense beside the options
NEEDS_OPTIONS = re.compile(
    r"\bwhich\b|\bfollowing\b|\bclosest\b|\bnearest\b|\bbest (?:approxim|estimat|describ)\w*|"
    r"\b(?:could|can|may|must|cannot|might) (?:not )?be\b|"
    r"\boptions?\b|\bchoices?\b|\bstatements?\b|\bsmallest interval|\bbetween\W*$|\bcurve\?",
    re.IGNORECASE,
)
NO_VALUE = re.compile(
    r"\b(?:none|all|both|any|neither|cannot|not enough|impossible|undetermined|undefined|no such|"
    r"at least|at most|other|either)\b",
    re.IGNORECASE,
)
REQUEST = re.compile(
    r"\s*(?:Enter|Give|Write|State|Choose|Select)[^.?\n]*\b(?:letter|option|choice|answer)s?\b[^.\n]*[.:]?\s*",
    re.IGNORECASE,
)


def ask_openly(row: Mapping[str, Any], answer: str) -> dict[str, Any] | None:
    """None where it has no options, or cannot do without them."""
    text = prompt_of(row)
    if len(text) > LONGEST_TEXT or (options := find_options(text)) is None:
        return None
    right = right_option(options, answer)
    question = text[: options.start].strip()
    behind = REQUEST.sub(" ", text[options.end :]).strip()
    question = REQUEST.sub(" ", question).strip() if right else question
    if not right or len(question) < 12 or NEEDS_OPTIONS.search(question) or NO_VALUE.search(right):
        return None
    if any(NO_VALUE.search(option) for option in options.texts.values()):
        return None
    if not (is_balanced(question) and is_balanced(right) and is_value(right)):
        return None
    return with_answer(with_prompt(row, f"{question}\n{behind}".strip()), right)


def is_balanced(text: str) -> bool:
    pairs = (("{", "}"), ("\\(", "\\)"), ("\\[", "\\]"))
    return text.count("$") % 2 == 0 and all(text.count(one) == text.count(other) for one, other in pairs)


def is_value(text: str) -> bool:
    """Whether the grader reads more in it than words."""
    readings = read(text)
    return bool(readings) and all(node.head not in ("word", "opaque") for node in walk(readings[0]))


def right_option(options: Options, answer: str) -> str:
    """The text of the option that the answer names or is; empty where that is not one option alone."""
    letter = in_words(answer).strip("(){}. ").upper()
    if letter in options.texts:
        return options.texts[letter]
    same = [
        text for text in options.texts.values() if grade(rf"\boxed{{{text}}}", answer).status == "correct"
    ]
    return same[0] if len(same) == 1 else ""
