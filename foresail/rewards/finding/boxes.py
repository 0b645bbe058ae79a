r"""Boxes: where `\boxed{…}` stands, and which boxes are one answer together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from foresail.rewards.finding.behind import may_tell_behind
from foresail.rewards.finding.cues import CUE
from foresail.rewards.finding.words import AND, CORRECTION, OR, STEP, compiled, wording

WINDOW = 20_000  # characters around the last box that are looked at
MOST = 64  # boxes that are looked at for belonging together
NEAR, FAR = 60, 400  # characters between two boxes that belong together, or may be offered as alternatives

# `\\` is a line break and `\{` a printed brace; neither opens a group. `\\boxed` is an over-escaped `\boxed`.
_BRACES = re.compile(
    r"\\(?:[bB]oxed|fbox|framebox)\s*+\{|\\[hv]?phantom\s*+\{|\\\\(?![bB]oxed|fbox|framebox)|\\[{}]|[{}]"
)
_COMMAND = re.compile(r"\\(?:[bB]oxed|fbox|framebox)")
_PLAIN = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\{([^{}\\]*+)\}")  # a number, mostly
_BARE = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\s*+([^\s{}$\\]++|\\[a-zA-Z]++(?:\{[^{}]*+\})*+)")

_ALTERNATIVE = wording(
    rf"{OR}|\beither\b|\bif (?:that|this|it) (?:is|does)(?: not|n't)"
    r"|\b(?:option|answer|solution|candidate|guess|possibility)\s*\#?\d",
    rf"{OR}|either|if|option|answer|solution|candidate|guess|possibility",
)
_OFFERED = wording(rf"{OR}(?:[\s$*\\(\[,:]|it|is|be|the|answer|just|even)*+\Z", OR)  # … maybe it is \boxed{7}
# "If n is even, … If n is odd, …": two boxes that each depend on something.
_CONDITION = wording(r"\b(?:if|when|assuming|provided)\b[^.\n]{0,80}\Z", "if|when|assuming|provided")
_CORRECTION = wording(CORRECTION, CORRECTION)
_REPLACED = compiled(r"\bfinal(?:ly)?\b|\bat last\b")
_STEP = compiled(rf"{STEP}|[=→⇒≈]|\\(?:Rightarrow|to|implies|approx)\b")
_AND = compiled(AND)
_PARTS = compiled(r"\b(?:second|third|next|part|case)\b|\((?:i{1,3}|[a-e]|\d)\)")
_EQUALS = re.compile(r"[\s$\\()\[\]]*(?:=|\\approx|≈|\\Rightarrow|⇒|\\to|→)[\s$\\()\[\]]*")
_SAME_AGAIN = compiled(
    r"(?<!\bif )\bthat is\b(?! not)|\b(?:i\.e\.|equivalently|which (?:is|equals)|namely|in other words)\b"
)
_AGAIN_HINT = re.compile(r"i\.e|quivalently|hich (?:is|eq)|amely|other words|hat is")
_ENUMERATOR = re.compile(r"\n\s*\(?(?:\d+|[a-zA-Z])[.):]")
_SENTENCE_END = re.compile(r"[.!?][\s$*)\]]|[。！？#<>|]|\n[ \t]*\n")
_WORDY = re.compile(r"[^\W\d_]{2,}|\d")
_TYPEFACE = re.compile(r"\\[a-zA-Z]+")
_AGAIN = compiled(r"\b(?:also|and|or|so|too|the|juga|cũng|também|también|aussi|auch|rin)\b|也|ก็|また|も|또")


class Box(NamedTuple):
    text: str
    start: int
    end: int


def bare_box(text: str) -> Box | None:
    r"""The last box without braces: `\boxed 7`."""
    found = [Box(bare[1], bare.start(), bare.end()) for bare in _BARE.finditer(text)]
    return found[-1] if found else None


def find_boxes(text: str, last: int | None = None) -> list[Box]:
    r"""The outermost boxes in order. A box that holds nothing but another box is the same as the inner one."""
    if last is None:
        last = last_command(text)
    if last < 0:
        return []
    start = _first_command(text, max(0, last - WINDOW), last)
    if (
        start == last
        and (plain := _PLAIN.match(text, last))
        and text.find("phantom", max(0, last - NEAR), last) < 0
    ):
        return [Box(plain[1].strip(), last, plain.end())]
    if text.find("phantom", max(0, start - NEAR), last) >= 0:  # it opens before the box that it hides
        start = max(0, start - NEAR)
    contents: dict[int, tuple[int, int]] = {}  # where a box's command begins -> the span inside its braces
    open_groups: list[re.Match[str]] = []
    phantoms = 0  # open groups that are not shown
    for token in _BRACES.finditer(text, start, last + WINDOW):
        sign = token[0]
        if sign[-1] == "{" and sign != r"\{":
            open_groups.append(token)
            phantoms += "phantom" in sign
        elif sign == "}" and open_groups:
            opening = open_groups.pop()
            if "phantom" in opening[0]:
                phantoms -= 1
            elif opening[0] != "{" and not phantoms:
                contents[opening.start()] = opening.end(), token.start()
                if not open_groups and opening.start() == last:
                    break
    boxes: list[Box] = []
    for start, (inside, end) in sorted(contents.items()):
        if not boxes or start >= boxes[-1].end:
            boxes.append(Box(_innermost(text, (inside, end), contents), start, end + 1))
    return boxes


# Plain searches for two letters find a command several times faster than its pattern does.


def last_command(text: str) -> int:
    """Where the last box's command begins, -1 without one."""
    place = len(text)
    while (place := text.rfind("ox", 0, place)) >= 0:
        if (start := _command_around(text, place)) >= 0:
            return start
    return -1


def _first_command(text: str, place: int, last: int) -> int:
    while (place := text.find("ox", place, last)) >= 0:
        if (start := _command_around(text, place)) >= 0:
            return start
        place += 1
    return last


def _command_around(text: str, place: int) -> int:
    r"""Where the command begins whose letters "ox" stand at `place`, -1 where they are of no command."""
    start = text.rfind("\\", max(0, place - 7), place)
    return start if start >= 0 and _COMMAND.match(text, start) else -1


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


def offered_together(text: str, boxes: list[Box], stands: Callable[[Box], bool]) -> list[Box]:
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
        if stands(earlier):
            run.insert(0, earlier)
    return run


def _belong_together(between: str) -> bool:
    """Whether two boxes are parts of one answer or offered side by side; a correction takes the first one back."""
    telling = may_tell_behind(between)
    if telling and _OFFERED.search(between):
        return True
    if telling and _CORRECTION.search(between):
        return False
    if _EQUALS.fullmatch(between) or _says_again(between):  # then both must be right
        return len(between) <= NEAR
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


def _says_again(between: str) -> bool:
    return _AGAIN_HINT.search(between) is not None and _SAME_AGAIN.search(between) is not None


def _contrast(between: str) -> bool:
    return (
        re.search(r"\b(?:but|however|yet|then I|so|thus|hence|therefore)\b", between, re.IGNORECASE)
        is not None
    )


def _said_alike(before: str, between: str) -> bool:
    r"""Whether both are introduced in the same words: `It is \boxed{1}. It is \boxed{2}.`"""
    one, other = (_AGAIN.sub("", _SENTENCE_END.split(part)[-1]) for part in (before, between))
    return len(one.split()) > 1 and one.split() == other.split()
