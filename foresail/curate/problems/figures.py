"""Whether the words of a problem refer to a figure: one that is code, or one that is not there.

figure(Wording.of("What is the area of the shape shown below?", "7")) -> "shape shown below?"
drawing(Wording.of("In the figure, … [asy] draw(A--B); [/asy]", "7")) -> "In the figure, …"
"""

from __future__ import annotations

import re

from foresail.curate.problems.evidence import matched
from foresail.curate.problems.wording import Wording

SEEN = r"(?:figures?(?! out)|diagrams?(?!\s*[$\\])|pictures?(?! (?:day|on))|illustrations?)"
DRAWN = (
    r"(?:graphs?|charts?|plots?|maps?|grids?|boards?|tables?|array|lattice|images?|"
    r"drawings?|sketch|photo(?:graph)?)"
)
PLACE = (
    r"(?:below|above|at (?:the )?(?:right|left)"
    r"|(?:to|on) the (?:right|left)(?! (?:by|of|so|a|\$|\\|\d))|here)"
)
REFERENCE = re.compile(
    rf"\b(?:in|see|from|using|consider|on|of|like|by|to) (?:the |this |each |these |"
    rf"one of the )?(?:above |accompanying |adjacent |attached "
    rf"|following |given |adjoining |two |three )?{SEEN}(?:(?! of\b| formed\b| obtained\b| into\b|"
    rf" consist| with\b| in the plane| is (?:re|tr))|(?= {PLACE}))\b"
    rf"|\bthe (?:accompanying |adjacent |attached |following |adjoining )?{SEEN} (?:{PLACE}|shows?|"
    rf"depicts|illustrates|represents|indicates|consists)\b"
    rf"|\b(?:look at|refer to|referring to) the {SEEN}"
    rf"|\b(?:as|is|are)(?: is)? (?:shown|pictured|depicted|illustrated|sketched|"
    rf"indicated) (?:{PLACE}|in (?:the|this) {SEEN}|by the {SEEN})"
    rf"|\b(?:shown|pictured|depicted|illustrated|diagrammed) (?:{PLACE}|in (?:the|this) {SEEN})"
    rf"|\bas (?:shown|pictured|illustrated|depicted|indicated)\b(?! (?:in|by) (?:the )?(?:equation|"
    rf"table|formula|following|example))"
    rf"|\b{SEEN} {PLACE}|\bFig(?:ure)?\.? ?\d\b|\(see (?:the )?{SEEN}\b",
    re.IGNORECASE,
)
TABLE_REFERENCE = re.compile(
    rf"\b{DRAWN} (?:shown|pictured|{PLACE})|\bshown in the (?:table|chart|graph)|\bthe (?:bar |"
    rf"line |circle |pie )?(?:graph|chart) (?:shows|below|above)"
    rf"|\b(?:shown|pictured|given) (?:below|above|here)\b|\b(?:is|are) shown\b(?! to)|\bshown (?:is|are)\b"
    rf"|\b\w+s? shown,|\bpictured\b",
    re.IGNORECASE,
)
SHADED = re.compile(
    r"\bshaded (?:region|area|portion|part|square|triangle|figure|section|sector|segment|circle)s?\b",
    re.IGNORECASE,
)
NOT_GIVEN = re.compile(r"diagram was not given|(?:draw|sketch) (?:a|the) (?:figure|diagram)", re.IGNORECASE)
# beside a table, "as shown" means the table
BESIDE_TABLE = re.compile(
    r"\bin the (?:accompanying |adjacent |attached |adjoining )?figures?\b(?! of\b)|\(see (?:the )?figure",
    re.IGNORECASE,
)
SPACES = re.compile(r"\s+")


def drawing(wording: Wording) -> str:
    """Code of a drawing that the words refer to."""
    return (refers_to(wording) or matched(SHADED, wording.words)) if wording.has_drawing else ""


def figure(wording: Wording) -> str:
    """The words refer to a figure, and there is none."""
    return "" if wording.has_drawing else refers_to(wording)


def refers_to(wording: Wording) -> str:
    words = SPACES.sub(" ", wording.words)
    if NOT_GIVEN.search(words):
        return ""
    if wording.has_table:
        return matched(BESIDE_TABLE, words)
    return matched(TABLE_REFERENCE, words) or matched(REFERENCE, words)
