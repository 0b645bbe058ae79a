r"""What is said before an answer: it may be ruled out there (`it isn't \\boxed{7}`), or another value offered."""

from __future__ import annotations

import re

from foresail.maths.finding.cues import CLOSING, sentences
from foresail.maths.finding.phrases import ANSWER, DISBELIEF, DISBELIEF_UNSPACED, NOT_AFTER, OR
from foresail.maths.finding.prefilter import UNSPACED, Prefilter, WordPattern, bits_in
from foresail.maths.finding.values import DENIED, values_of
from foresail.maths.lexicon.table import compiled, spaced, unspaced, words_for

BEFORE_CHARS = 80  # characters before an answer that are looked at

_BARE_NUMBER = re.compile(r"\$?-?\d[\d.,/]*")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_LETTER = re.compile(r"[^\W\d_]|=")
_DENIED_AFTER = compiled(NOT_AFTER)
_BESIDE = WordPattern(
    rf"{OR}(?:\W+(?:it|is|be|maybe|possibly|perhaps|even|just|text|rather|exactly|also))*+[^\w=+*/^-]*\Z",
    words_for("or"),
)
_WRONGLY = [
    *"common frequent typical".split(),
    *(rf"{word}\w*" for word in "wrong incorrect false mistaken erroneous".split()),
]
_MISANSWER = WordPattern(
    rf"\b(?:{spaced('wrong name')}) (?:final )?(?:answer|sagot|réponse|antwort)(?: \w+)?\W*\Z"
    r"|\b(?:common|frequent|typical) (?:mistake|error"
    r"|wrong answer)(?: here)? (?:is|would be)(?: to \w+)?\W*\Z|\b(?:wrongly|mistakenly|incorrectly"
    r"|erroneously|falsely) (?:\w+ )?(?:\w+ )?\W*\Z|\bwrong to \w+(?: \w+)?\W*\Z"
    rf"|(?:{ANSWER})\s*(?:{spaced('wrong after answer')}|{unspaced('wrong after answer')})"
    rf"(?:\s*[^\s\d]+)?\W*\Z|(?:{unspaced('wrong answer')})\W*\Z",
    [*words_for("wrong name", "wrong answer", "answer"), *_WRONGLY],
)
_DISBELIEVED = WordPattern(
    rf"{DISBELIEF}(?:[\s$*(\[]+(?:that|the|my|our|final|correct|right|answer|it|it[’']s|is|value|result|to"
    rf"|be|of|equals?|say|que|là|la|a"
    rf"|est))*[\s$*(\[\\]*\Z|(?:{DISBELIEF_UNSPACED})[^，。,.\d]{{0,8}}\Z",
    words_for("disbelief"),
)
_EXAMPLE = WordPattern(
    r"\b(?:e\.g\.|for (?:example|instance)|such as|in the form(?:at)?(?: of)?)\W*\Z",
    "e example instance such form".split(),
    marks=True,
)
_TELLING_HOW = "put write place give enclose present express provide enter box".split()
_INSTRUCTION = WordPattern(
    r"\b(?:put|write|place|give|enclose|present|express|provide|enter"
    r"|box)\b[^.,;:\n]{0,30}\banswers?\b[^.,;:\n]{0,30}"
    r"\b(?:in|within|inside|as|using)\W*\Z",
    _TELLING_HOW,
)
_SUPPOSED = WordPattern(
    rf"\b(?:if|suppose|whether|unless)(?: that)?(?: \w+){{0,2}} (?:{ANSWER})(?: \w+){{1,3}}\W*\Z",
    "if suppose whether unless".split(),
)
_NOT = Prefilter(words_for("denial"))
_MISNAME = Prefilter([*words_for("wrong name", "wrong after answer"), *_WRONGLY, "mistake", "error"])
_UNCLAIM = Prefilter(
    [
        *words_for("disbelief"),
        *_TELLING_HOW,
        *"example instance such form format if suppose assume assuming whether unless".split(),
    ]
)
_OFFER = Prefilter(words_for("or"))
# What the words before an answer may do: rule it out, name it as wrong, claim nothing of it, offer another value.
DENY, MISNAME, UNCLAIM, OFFER = _NOT.bit, _MISNAME.bit, _UNCLAIM.bit, _OFFER.bit
_BEFORE = DENY | MISNAME | UNCLAIM | OFFER
_RULED_OUT = ((DENY, DENIED), (MISNAME, _MISANSWER), (UNCLAIM, _DISBELIEVED), (UNCLAIM, _EXAMPLE),
              (UNCLAIM, _INSTRUCTION), (UNCLAIM, _SUPPOSED))  # fmt: skip


def said_before(text: str, start: int, end: int, floor: int = 0) -> tuple[str, ...] | None:
    r"""The value that is offered right before the answer at `start`; None where the answer is ruled out there.

    `either 7 or \boxed{8}` -> 7; `it isn't \boxed{8}`, `if the answer were \boxed{8}` -> None. What stands before
    `floor`, another box, is not looked at.
    """
    after = text[end : end + 40].lstrip(CLOSING)
    if (not after.isascii() or after.startswith("nicht")) and _DENIED_AFTER.match(after):
        return None
    before = text[max(floor, start - BEFORE_CHARS) : start]
    kinds = _kinds_before(before)
    if not kinds:
        return ()
    before = sentences(before)[-1]
    if any(kinds & kind and expression.search(before) for kind, expression in _RULED_OUT):
        return None
    return _offered_before(before) if kinds & OFFER else ()


def _offered_before(before: str) -> tuple[str, ...]:
    offer = _BESIDE.search(before)
    values = values_of(before[: offer.start()]) if offer else []
    if (
        not values or offer is None or not _BARE_NUMBER.fullmatch(values[-1].text)
    ):  # the side $s$, or \boxed{7}
        return ()
    beside = not _LETTER.search(_COMMAND.sub("", before[values[-1].end : offer.start()]))
    return (values[-1].text,) if beside else ()


def _kinds_before(text: str) -> int:
    """The kinds of words that may stand before an answer, as bits: _kinds_before("Hence the area is") -> 0."""
    text = text[max(text.rfind(". "), text.rfind("\n")) + 1 :]
    if not text or text.isspace():  # the box has a line of its own
        return 0
    if not text.isascii() and UNSPACED.search(text):
        return _BEFORE
    return bits_in(text) & _BEFORE
