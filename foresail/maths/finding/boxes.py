r"""Boxes: where `\boxed{…}` stands, which boxes are one answer together, and which are parts of a formula."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from foresail.maths.finding.after import is_taken_back, may_change_answer
from foresail.maths.finding.before_box import is_free_before
from foresail.maths.finding.cues import CUE
from foresail.maths.finding.phrases import AND, AND_OR, CORRECTION, NOT, OR, STEP, WRONG
from foresail.maths.finding.prefilter import WordPattern
from foresail.maths.lexicon.table import compiled, spaced, unspaced, words_for
from foresail.maths.notation.nouns import names_things

WINDOW_CHARS = 20_000  # characters around the last box that are looked at
MAX_BOXES = 64  # boxes that are looked at for belonging together
NEAR_CHARS, FAR_CHARS = (
    60,
    400,
)  # characters between two boxes that belong together, or may be offered as alternatives

# `\\` is a line break and `\{` a printed brace; neither opens a group. `\\boxed` is an over-escaped `\boxed`.
_BRACES = re.compile(
    r"\\(?:[bB]oxed|fbox|framebox)\s*+\{|\\[hv]?phantom\s*+\{|\\\\(?![bB]oxed|fbox|framebox)|\\[{}]|[{}]"
)
_COMMAND = re.compile(r"\\(?:[bB]oxed|fbox|framebox)")
_PLAIN = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\{([^{}\\]*+)\}")  # a number, mostly
# Braces in braces at most twice: `\boxed{\frac{\sqrt{2}}{2}}`.
_INSIDE = r"(?:[^{}\\]++|\\.)*+"
_FLAT_GROUP = rf"\{{{_INSIDE}\}}"
_GROUP = rf"\{{(?:[^{{}}\\]++|\\.|{_FLAT_GROUP})*+\}}"
_FORMULA = re.compile(rf"\\(?:[bB]oxed|fbox|framebox)\{{((?:[^{{}}\\]++|\\.|{_GROUP})*+)\}}", re.DOTALL)
# The closing brace was escaped, and no other one closes the box.
_ESCAPED = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\s*+\{((?:[^{}\\\n]|\\[a-zA-Z])*+)(?<!\s)\\\}")
_BARE = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\s*+([^\s{}$\\]++|\\[a-zA-Z]++(?:\{[^{}]*+\})*+)")

_ALTERNATIVE = WordPattern(
    rf"{OR}|\beither\b|\bif (?:that|this|it) (?:is|does)(?: not|n't)"
    r"|\b(?:option|answer|solution|candidate|guess|possibility)\s*\#?\d",
    [*words_for("or"), *"either if option answer solution candidate guess possibility".split()],
)
# … maybe it is \boxed{7}
_OFFERED = WordPattern(rf"{OR}(?:[\s$*\\(\[,:]|it|is|be|the|answer|just|even)*+\Z", words_for("or"))
# "If n is even, … If n is odd, …": two boxes that each depend on something.
_CONDITION = WordPattern(
    r"\b(?:if|when|assuming|provided)\b[^.\n]{0,80}\Z", "if when assuming provided".split()
)
_CORRECTION = WordPattern(CORRECTION, words_for("correction"))
_REPLACED = compiled(r"\bfinal(?:ly)?\b|\bat last\b")
_STEP = compiled(rf"{STEP}|[=→⇒≈]|\\(?:Rightarrow|to|implies|approx)\b")
_AND = compiled(AND)
_CONTRAST = compiled(r"\b(?:but|however|yet|then I|so|thus|hence|therefore)\b")
_PARTS = compiled(r"\b(?:second|third|next|part|case)\b|\((?:i{1,3}|[a-e]|\d)\)")
# \boxed{3} cm, \boxed{4} cm and the height is \boxed{5}
_MARKS = r"[\s$(){}\[\]*|\\]*+"
_MEASURED = (
    "length|width|height|depth|area|perimeter|volume|surface|radius|diameter|mean|median|mode|minimum|maximum"
    "|sum|product"
)
_JOINED = compiled(
    rf"(?P<unit>(?:[ \t${{}}]*[^\W\d_]+(?=[\s,;$}}]))??){_MARKS}(?:(?:{AND}|{AND_OR}|\n){_MARKS})*"
    r"(?P<label>(?:(?:[^\W\d_][\w'’]*\s+){1,5}(?:is|are|=|:)"
    r"|[a-z](?:_?\w|_\{\s*\w\s*\})?(?:\(\s*\w+\s*\))?\s*="
    rf"|the other|the second|(?:the\s+)?(?:{_MEASURED})\b)?)" + _MARKS
)
_CONNECTED = compiled(rf"{AND}|{AND_OR}|\n")
_DENYING = rf"\b(?:{NOT})(?!\w)|{WRONG}|{CORRECTION}"
_NO_LABEL = compiled(
    r"\b(?:it|its|this|that|these|i|we|you|they|he|she|answers?|results?|so|then|thus|hence|but|final|only)\b"
    rf"|{_DENYING}"
)
# The second of two questions' answers: ".\n\n(b) We get "
_NEXT_PART = compiled(
    r"[.\s$*\\)\]{}]*(?:for part \([a-h]\)[\s{}]*and|\((?:[b-h]|ii|iii|iv|[2-9])\)"
    r"|(?:part|case) \(?(?:[b-h]|ii|iii|iv|[2-9])\)?[.:]?)"
    rf"(?![^.!?\n]*(?:{_DENYING}))[^.!?\n]{{0,40}}"
)
_EQUALS = re.compile(r"[\s$\\()\[\]]*(?:=|\\approx|≈|\\Rightarrow|⇒|\\to|→)[\s$\\()\[\]]*")
_SAME_AGAIN = compiled(
    r"(?<!\bif )\bthat is\b(?! not)|\b(?:i\.e\.|equivalently|which (?:is|equals)|namely|in other words)\b"
)
_AGAIN_HINT = re.compile(r"i\.e|quivalently|hich (?:is|eq)|amely|other words|hat is")
_ENUMERATOR = re.compile(r"\n[^\S\n]*+(?:\(?(?:\d+|[a-zA-Z])[.):]|[-*•](?=\s))")
_SENTENCE_END = re.compile(r"[.!?][\s$*)\]]|[。！？#<>|]|\n[ \t]*\n")
_WORDY = re.compile(r"[^\W\d_]{2,}|\d")
_TYPEFACE = re.compile(r"\\[a-zA-Z]+")
_AGAIN = compiled(rf"\b(?:and|or|so|too|the|{spaced('also')})\b|{unspaced('also')}|も")
_DEFINED = re.compile(
    r"\\(?:(?:new|renew|provide)command\*?|(?:New|Renew)DocumentCommand|[egx]?def|let)"
    r"\s*+\{?\s*+\\([a-zA-Z]++)"
)


class Box(NamedTuple):
    text: str
    start: int
    end: int


def bare_box(text: str) -> Box | None:
    r"""The last box without braces: `\boxed 7`."""
    matches = list(_BARE.finditer(text))
    return Box(matches[-1][1], *matches[-1].span()) if matches else None


def find_boxes(text: str, last: int | None = None) -> list[Box]:
    r"""The outermost boxes in order. A box that holds nothing but another box is the same as the inner one."""
    if last is None:
        last = last_command(text)
    if last < 0:
        return []
    start = _first_command(text, max(0, last - WINDOW_CHARS), last)
    if text.find("phantom", max(0, start - NEAR_CHARS), last) >= 0:  # it opens before the box that it hides
        start = max(0, start - NEAR_CHARS)
    elif start == last and (
        plain := _PLAIN.match(text, last) or _FORMULA.match(text, last, last + WINDOW_CHARS)
    ):
        return [Box(plain[1].strip(), last, plain.end())]
    contents: dict[int, tuple[int, int]] = {}  # where a box's command begins -> the span inside its braces
    open_groups: list[re.Match[str]] = []
    phantoms = 0  # open groups that are not shown
    for token in _BRACES.finditer(text, start, last + WINDOW_CHARS):
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
    if last not in contents and (escaped := _ESCAPED.match(text, last)):
        contents[last] = escaped.span(1)
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
    """Where the first box's command begins between two places, `last` without one."""
    first = last
    for letters in ("box", "\\Boxed") if text.find("B", place, last) >= 0 else ("box",):
        start = place
        while (start := text.find(letters, start, first)) >= 0:
            if (command := _command_around(text, start + 1)) >= 0:
                first = command
                break
            start += 1
    return first


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


class Offer(NamedTuple):
    """Boxes that stand beside the last one, and whether they are one list: else each must be right by itself."""

    boxes: list[Box]
    is_list: bool


def offered_together(text: str, boxes: list[Box], stands: Callable[[Box], bool]) -> Offer:
    r"""The last box and those it stands beside: `\boxed{1} and \boxed{2}`, but not `\boxed{1}, no: \boxed{2}`."""
    run, is_list = [boxes[-1]], True
    for place in range(len(boxes) - 2, max(-1, len(boxes) - MAX_BOXES), -1):
        earlier = boxes[place]
        between = text[earlier.end : run[0].start]
        if len(between) > FAR_CHARS:
            break
        before = text[max(0, earlier.start - FAR_CHARS) : earlier.start]
        conditions = _CONDITION.search(between) and _CONDITION.search(before)
        if not (conditions or _belong_together(between) or _said_alike(before, between)):
            break
        if not _ALTERNATIVE.search(between) and is_taken_back(between):
            break
        if stands(earlier):
            run.insert(0, earlier)
            floor = boxes[place - 1].end if place else 0
            is_list = (
                is_list and _makes_list(between) and is_free_before(text, earlier.start, earlier.end, floor)
            )
    return Offer(run, is_list)


def _belong_together(between: str) -> bool:
    """Whether two boxes are parts of one answer or offered side by side; a correction takes the first one back."""
    may_change = may_change_answer(between)
    if may_change and _OFFERED.search(between):
        return True
    if may_change and _CORRECTION.search(between):
        return False
    same_again = _AGAIN_HINT.search(between) and _SAME_AGAIN.search(between)
    if same_again or _EQUALS.fullmatch(between):  # then both must be right
        return len(between) <= NEAR_CHARS
    if may_change and _ALTERNATIVE.search(between):
        return True
    if len(between) > NEAR_CHARS or _REPLACED.search(between):
        return False
    if _PARTS.search(between):
        return True
    bare = _ENUMERATOR.sub(" ", _TYPEFACE.sub(" ", between))
    if not _WORDY.search(bare):
        return "\n\n" not in between.strip(" ")
    if _SENTENCE_END.search(between):
        return CUE.fullmatch(_AGAIN.sub("", _SENTENCE_END.split(between)[-1]).strip(" $*\\([")) is not None
    return not _STEP.search(between) or bool(_AND.search(between) and not _CONTRAST.search(between))


def _makes_list(between: str) -> bool:
    """Whether what stands between two boxes joins them to one list: ", ", " cm and ", " and the width is ".

    Everything else leaves them alternatives: " was a typo for ", "; it is ", " -> ".
    """
    bare = _TYPEFACE.sub(" ", between)
    if _NEXT_PART.fullmatch(bare):
        return True
    joined = _JOINED.fullmatch(_ENUMERATOR.sub("\n", bare))
    if joined is None or _NO_LABEL.search(joined["label"]):
        return False
    unit = joined["unit"].split()
    return not unit or (names_things(unit) and _CONNECTED.search(bare) is not None)


def _said_alike(before: str, between: str) -> bool:
    r"""Whether both are introduced in the same words: `It is \boxed{1}. It is \boxed{2}.`"""
    words = _words_of_last_sentence(between)
    return len(words) > 1 and _words_of_last_sentence(before) == words


def _words_of_last_sentence(text: str) -> list[str]:
    """Without those that only say that there is another one."""
    return _AGAIN.sub("", _SENTENCE_END.split(text)[-1]).split()


def is_redefined(text: str, box: Box) -> bool:
    r"""Whether the text gives a box, or what stands in this one, another meaning: `\renewcommand{\boxed}[1]{8}`."""
    command = text[box.start : box.start + 5]  # a definition names it, too
    if "\\" not in box.text and text.find(command, 0, box.start) < 0:
        return False
    defines = "def" in text and ("def\\" in text or "def \\" in text)
    if not (defines or "ommand" in text or "\\let" in text):
        return False
    defined = {definition[1] for definition in _DEFINED.finditer(text)}
    inside = {command[0][1:] for command in _TYPEFACE.finditer(box.text)}
    return not defined.isdisjoint(inside) or any(_COMMAND.match(f"\\{name}") for name in defined)
