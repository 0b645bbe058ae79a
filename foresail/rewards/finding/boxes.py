r"""Boxes: where `\boxed{…}` stands, and which boxes are one answer together."""

from __future__ import annotations

import re
from typing import NamedTuple

from foresail.rewards.finding.cues import CUE
from foresail.rewards.finding.telling import may_tell_behind
from foresail.rewards.finding.words import AND, CORRECTION, OR, STEP, compiled

WINDOW = 20_000  # characters around the last box that are looked at
MOST = 64  # boxes that are looked at for belonging together
NEAR, FAR = 60, 400  # characters between two boxes that belong together, or may be offered as alternatives

# `\\` is a line break and `\{` a printed brace; neither opens a group. `\\boxed` is an over-escaped `\boxed`.
_BRACES = re.compile(
    r"\\(?:[bB]oxed|fbox|framebox)\s*+\{|\\[hv]?phantom\s*+\{|\\\\(?![bB]oxed|fbox|framebox)|\\[{}]|[{}]"
)
_COMMAND = re.compile(r"\\(?:[bB]oxed|fbox|framebox)")
_BARE = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\s*+([^\s{}$\\]++|\\[a-zA-Z]++(?:\{[^{}]*+\})*+)")

_ALTERNATIVE = compiled(
    rf"{OR}|\beither\b|\bif (?:that|this|it) (?:is|does)(?: not|n't)"
    r"|\b(?:option|answer|solution|candidate|guess|possibility)\s*\#?\d"
)
_OFFERED = compiled(rf"{OR}(?:[\s$*\\(\[,:]|it|is|be|the|answer|just|even)*+\Z")  # … maybe it is \boxed{7}
# "If n is even, … If n is odd, …": two boxes that each depend on something.
_CONDITION = compiled(r"\b(?:if|when|assuming|provided)\b[^.\n]{0,80}\Z")
_CORRECTION = compiled(CORRECTION)
_REPLACED = compiled(r"\bfinal(?:ly)?\b|\bat last\b")
_STEP = compiled(rf"{STEP}|[=→⇒≈]|\\(?:Rightarrow|to|implies|approx)\b")
_AND = compiled(AND)
_PARTS = compiled(r"\b(?:second|third|next|part|case)\b|\((?:i{1,3}|[a-e]|\d)\)")
_SAME_AGAIN = compiled(
    r"^[\s$\\()\[\]]*(?:=|\\approx|≈|\\Rightarrow|⇒|\\to|→)[\s$\\()\[\]]*$"
    r"|(?<!\bif )\bthat is\b(?! not)"
    r"|\b(?:i\.e\.|equivalently|which (?:is|equals)|namely|in other words)\b"
)
_ENUMERATOR = re.compile(r"\n\s*\(?(?:\d+|[a-zA-Z])[.):]")
_SENTENCE_END = re.compile(r"[.!?][\s$*)\]]|[。！？#<>|]|\n[ \t]*\n")
_WORDY = re.compile(r"[^\W\d_]{2,}|\d")
_TYPEFACE = re.compile(r"\\[a-zA-Z]+")
_AGAIN = compiled(r"\b(?:also|and|or|so|too|the|juga|cũng|também|también|aussi|auch|rin)\b|也|ก็|また|も|또")


class Box(NamedTuple):
    text: str
    start: int
    end: int


def has_box(text: str) -> bool:
    return _last_command(text) >= 0


def bare_box(text: str) -> Box | None:
    r"""The last box without braces: `\boxed 7`."""
    bare = None
    for bare in _BARE.finditer(text):
        pass
    return Box(bare[1], bare.start(), bare.end()) if bare else None


def find_boxes(text: str) -> list[Box]:
    r"""The outermost boxes in order. A box that holds nothing but another box is the same as the inner one."""
    last = _last_command(text)
    if last < 0:
        return []
    start = _first_command(text, max(0, last - WINDOW))
    if "phantom" in text:  # it opens before the box that it hides
        start = max(0, start - NEAR)
    contents: dict[int, tuple[int, int]] = {}  # where a box's command begins -> the span inside its braces
    open_groups: list[re.Match[str]] = []
    phantoms = 0  # open groups that are not shown
    for token in _BRACES.finditer(text, start, last + WINDOW):
        sign = token[0]
        if sign.endswith("{") and sign != r"\{":
            open_groups.append(token)
            phantoms += "phantom" in sign
        elif sign == "}" and open_groups:
            opening = open_groups.pop()
            if "phantom" in opening[0]:
                phantoms -= 1
            elif opening[0] != "{" and not phantoms:
                contents[opening.start()] = (opening.end(), token.start())
    boxes: list[Box] = []
    for start, (inside, end) in sorted(contents.items()):
        if not boxes or start >= boxes[-1].end:
            boxes.append(Box(_innermost(text, (inside, end), contents), start, end + 1))
    return boxes


# Plain searches for the three letters find a command several times faster than its pattern does.


def _last_command(text: str) -> int:
    """Where the last box's command begins, -1 without one."""
    place = len(text)
    while (place := max(text.rfind("box", 0, place), text.rfind("Box", 0, place))) >= 0:
        start = text.rfind("\\", max(0, place - 6), place)
        if start >= 0 and _COMMAND.match(text, start):
            return start
    return -1


def _first_command(text: str, place: int) -> int:
    while True:
        small, capital = text.find("box", place), text.find("Box", place)
        place = max(small, capital) if small < 0 or capital < 0 else min(small, capital)
        start = text.rfind("\\", max(0, place - 6), place)
        if start >= 0 and _COMMAND.match(text, start):
            return start
        place += 1


def _innermost(text: str, span: tuple[int, int], contents: dict[int, tuple[int, int]]) -> str:
    start, end = span
    while True:
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        inner = contents.get(start)
        if inner is None or inner[1] != end - 1:
            return text[start:end]
        start, end = inner


def offered_together(text: str, boxes: list[Box]) -> list[Box]:
    r"""The last box and those it stands beside: `\boxed{1} and \boxed{2}`, but not `\boxed{1}, no: \boxed{2}`."""
    run = [boxes[-1]]
    for earlier in reversed(boxes[-MOST:-1]):
        between = text[earlier.end : run[0].start]
        if len(between) > FAR:
            break
        before = text[max(0, earlier.start - FAR) : earlier.start]
        conditions = _CONDITION.search(between) and _CONDITION.search(before)
        if not (conditions or _belong_together(between) or _said_alike(before, between)):
            break
        run.insert(0, earlier)
    return run


def _belong_together(between: str) -> bool:
    """Whether two boxes are parts of one answer or offered side by side; a correction takes the first one back."""
    telling = may_tell_behind(between)
    if telling and _OFFERED.search(between):
        return True
    if (telling and _CORRECTION.search(between)) or _SAME_AGAIN.search(between):
        return False
    if telling and _ALTERNATIVE.search(between):
        return True
    if len(between) > NEAR or _REPLACED.search(between):
        return False
    if _PARTS.search(between):
        return True
    bare = _ENUMERATOR.sub(" ", _TYPEFACE.sub(" ", between))
    if not _WORDY.search(bare):
        return "\n\n" not in between.strip(" ")
    if _SENTENCE_END.search(between):
        return CUE.fullmatch(_AGAIN.sub("", _SENTENCE_END.split(between)[-1]).strip(" $*\\([")) is not None
    return not _STEP.search(between) or (_AND.search(between) is not None and not _contrast(between))


def _contrast(between: str) -> bool:
    return re.search(r"\b(?:but|however|yet|then I|so|thus|hence|therefore)\b", between, re.IGNORECASE) is not None


def _said_alike(before: str, between: str) -> bool:
    r"""Whether both are introduced in the same words: `It is \boxed{1}. It is \boxed{2}.`"""
    one, other = (_AGAIN.sub("", _SENTENCE_END.split(part)[-1]) for part in (before, between))
    return len(one.split()) > 1 and one.split() == other.split()
