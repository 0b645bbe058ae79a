r"""Boxes: where `\boxed{…}` stands, which boxes are one answer together, and which are parts of a formula."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from foresail.maths.finding.after import may_change_answer
from foresail.maths.finding.cues import CUE
from foresail.maths.finding.prefilter import WordPattern
from foresail.maths.finding.words import AND, CORRECTION, OR, STEP, compiled

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

_ALTERNATIVE = WordPattern(
    rf"{OR}|\beither\b|\bif (?:that|this|it) (?:is|does)(?: not|n't)"
    r"|\b(?:option|answer|solution|candidate|guess|possibility)\s*\#?\d",
    rf"{OR}|either|if|option|answer|solution|candidate|guess|possibility",
)
# … maybe it is \boxed{7}
_OFFERED = WordPattern(rf"{OR}(?:[\s$*\\(\[,:]|it|is|be|the|answer|just|even)*+\Z", OR)
# "If n is even, … If n is odd, …": two boxes that each depend on something.
_CONDITION = WordPattern(r"\b(?:if|when|assuming|provided)\b[^.\n]{0,80}\Z", "if|when|assuming|provided")
_CORRECTION = WordPattern(CORRECTION, CORRECTION)
_REPLACED = compiled(r"\bfinal(?:ly)?\b|\bat last\b")
_STEP = compiled(rf"{STEP}|[=→⇒≈]|\\(?:Rightarrow|to|implies|approx)\b")
_AND = compiled(AND)
_CONTRAST = compiled(r"\b(?:but|however|yet|then I|so|thus|hence|therefore)\b")
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
# Signs around a box that make it a part of a formula.
FORMULA = 200  # characters of a formula around a box
_SIGN_BEFORE = re.compile(r"(?:[-−+/^_!<≠÷×·]|(?<!\*)\*|\\(?:ne|neq|not|lt|cdot|times|div|pm|mp))([ \t]*)\Z")
_GLUED_BEFORE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]\Z|[\d)\]]\Z")
_SIGN_AFTER = re.compile(
    r"[ \t]*(?:[+!÷×·]|[-−/](?![-\s]*[a-zA-Z]{2})|\*(?!\*)|\^(?!\s*\{?\s*(?:\\(?:circ|degree|text)|st|nd|rd|th))"
    r"|\\(?:cdot|times|div|pm|mp|pi|sqrt|[dt]?frac|binom|ln|log|sin|cos|tan|infty|sum|int)(?![a-zA-Z]))|[a-zA-Z\d(]"
)
_FREE, _FREE_AFTER = ("", "=", "$", "(", ":"), ("", "$", ".", ",", ";", ":", "\n", ")", "}")
_OPENING = re.compile(
    r"\\(?:sqrt|frac|dfrac|tfrac|binom|log|ln|sin|cos|tan|overline|cancel|lfloor|lceil)\b[^$]*\Z"
)


class Box(NamedTuple):
    text: str
    start: int
    end: int


def bare_box(text: str) -> Box | None:
    r"""The last box without braces: `\boxed 7`."""
    found = list(_BARE.finditer(text))
    return Box(found[-1][1], *found[-1].span()) if found else None


def find_boxes(text: str, last: int | None = None) -> list[Box]:
    r"""The outermost boxes in order. A box that holds nothing but another box is the same as the inner one."""
    if last is None:
        last = last_command(text)
    if last < 0:
        return []
    start = _first_command(text, max(0, last - WINDOW), last)
    if text.find("phantom", max(0, start - NEAR), last) >= 0:  # it opens before the box that it hides
        start = max(0, start - NEAR)
    elif start == last and (plain := _PLAIN.match(text, last)):
        return [Box(plain[1].strip(), last, plain.end())]
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
    telling = may_change_answer(between)
    if telling and _OFFERED.search(between):
        return True
    if telling and _CORRECTION.search(between):
        return False
    same_again = _AGAIN_HINT.search(between) and _SAME_AGAIN.search(between)
    if same_again or _EQUALS.fullmatch(between):  # then both must be right
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
    return not _STEP.search(between) or bool(_AND.search(between) and not _CONTRAST.search(between))


def _said_alike(before: str, between: str) -> bool:
    r"""Whether both are introduced in the same words: `It is \boxed{1}. It is \boxed{2}.`"""
    one, other = (_AGAIN.sub("", _SENTENCE_END.split(part)[-1]) for part in (before, between))
    return len(one.split()) > 1 and one.split() == other.split()


def is_part_of_formula(text: str, start: int, end: int) -> bool:
    r"""Whether the box there is a part of a formula: `-\boxed{7}`, `\boxed{7}^2`, but not `x = \boxed{7}`."""
    if not _ends_freely(text, end) and _SIGN_AFTER.match(text, end):
        return True
    before = text[max(0, start - FORMULA) : start]
    line = before[before.rfind("\n") + 1 :]
    if line[-1:] in _FREE and line.count("{") <= line.count("}"):
        return False
    opening = max(line.rfind("$"), line.rfind("\\("), line.rfind("\\["))
    sign = _SIGN_BEFORE.search(line)
    if sign and (not sign[1] or (opening >= 0 and sign.start() > opening + 1)):  # and no dash between words
        return True
    if _GLUED_BEFORE.search(line):
        return True
    formula = line[opening + 1 :]
    if formula.count("{") <= formula.count("}"):
        return False
    group = _OPENING.search(formula)
    return group is not None and group[0].count("{") > group[0].count("}")


def _ends_freely(text: str, end: int) -> bool:
    """Whether a sign that ends a formula or a sentence follows, as it mostly does."""
    return text[end : end + 1] in _FREE_AFTER or text.startswith(("\\)", "\\]", "\\\\"), end)
