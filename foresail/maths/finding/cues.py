r"""Cues: the words that announce an answer, in many languages: "the answer is", "đáp án là", `### Final Answer`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.maths.finding.phrases import ANSWER
from foresail.maths.lexicon.table import first_words, spaced, unspaced, words_for

_MODIFIER = rf"(?:\s+(?:{spaced('final')}))|{unspaced('final')}"
_LINK = rf"(?:{spaced('announces', 'is')})(?!\w)|[:：=|→]|->|{unspaced('announces', 'is')}"
CUE = re.compile(
    rf"(?:{ANSWER}|(?:^|(?<=\n))[>*_ ]*A(?=[*_ ]*[:：]))"
    rf"(?:\s*\([^()\n]{{0,30}}\))?[*_]*+(?:{_MODIFIER})?[*_ \t]*+(?:{_LINK})[*_]*+"
    r"(?:\s*(?:therefore|thus|:|：|simply|indeed|just|precisely))?\s*",
    re.IGNORECASE,
)
_HINTS = tuple(hint for word in words_for("answer") for hint, _ in first_words(word))
_ASCII_HINTS = tuple(filter(str.isascii, _HINTS))
_LABEL = re.compile(r"^[>*_ ]*[aA][*_ ]*[:：]", re.MULTILINE)
_HASHES = re.compile(r"[ \t]*+####(?!#)")
_BEFORE_ANSWER = f"{spaced('answer heading')}|{unspaced('answer heading')}"
_HEADING = re.compile(
    rf"[\s#>*_\-–•\d.)✅🎯]*(?:(?:{_BEFORE_ANSWER})\s*)*"
    rf"(?:{ANSWER})(?:{_MODIFIER})?[\s*_:：]*\n\s*",
    re.IGNORECASE,
)
# A sentence ends after its point, unless that is an abbreviation's. The blank is looked for first, being rarer.
_ABBREVIATIONS = ("bzw", "vs", "approx", "e.g", "i.e", "ca", "resp")
_BLANK = r"(?:[\s)*$]|\\[\])])*"
SENTENCE_BREAK = (
    r"[\s)*$](?<=[.!?][\s\S])" + "".join(rf"(?<!\b{word}\.[\s\S])" for word in _ABBREVIATIONS) + _BLANK
    + rf"|\\[\])](?<=[.!?]..){_BLANK}|(?<=[。！？])"
)  # fmt: skip
SENTENCES = re.compile(rf"{SENTENCE_BREAK}|\n+")
# The same for ASCII. Every break has a first character there, and the search skips to the next one that may be it.
_ASCII_SENTENCES = re.compile(
    r"[\s)*$\\](?:(?<=[.!?][^\\])" + "".join(rf"(?<!\b{word}\.[\s\S])" for word in _ABBREVIATIONS) + _BLANK
    + rf"|(?<=\\)[\])](?<=[.!?]..){_BLANK}|(?<=\n)\n*)"
)  # fmt: skip
CLOSING = " \t$)]}*\\_\"'”」）"  # what may close a formula or a quotation
POINT = "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
_SENTENCE_END = re.compile(rf"[.!]{POINT}(?=\s|$)|[。！]|\n")
_DISPLAY = re.compile(r"\s*(?:\\\[.*?\\\]|\$\$.*?\$\$|\\\(.*?\\\)|\$[^$]*\$(?!\d))", re.DOTALL)
_BULLET = re.compile(r"[ \t]*(?:[-*•+]|(\d{1,2})[.)])[ \t]+(?=\S)([^\n]*)(?:\n[ \t]*)*")


def sentences(text: str) -> list[str]:
    """sentences("It is 7. Or 8.") -> ["It is 7.", "Or 8."]."""
    return (_ASCII_SENTENCES if text.isascii() else SENTENCES).split(text)


def may_hold_cue(text: str) -> bool:
    """A quick look for letters that every cue has."""
    hints = _ASCII_HINTS if text.isascii() else _HINTS
    if any(map(text.lower().__contains__, hints)):
        return True
    return (":" in text or "：" in text) and _LABEL.search(text) is not None


def cues_from_the_end(text: str) -> Iterator[tuple[int, int]]:
    """Where each cue starts and ends, the last one first; a line is searched only when it is reached."""
    end = len(text)
    while end > 0:
        start = text.rfind("\n", 0, end - 1) + 1
        line = text[start:end]
        cues = []
        if may_hold_cue(line):
            cues = [(cue.start(), cue.end()) for cue in CUE.finditer(text, start, end)]
        if hashes := _HASHES.match(text, start, end):
            cues.append((hashes.start(), hashes.end()))
        elif not cues and (heading := _HEADING.fullmatch(text, start, end)):
            cues.append((start, heading.end()))
        yield from sorted(cues, reverse=True)
        end = start


def sentence_end(text: str, begin: int) -> int:
    """Where the sentence that begins there ends; a displayed formula that opens it is not cut."""
    display = _DISPLAY.match(text, begin)
    end = _SENTENCE_END.search(text, display.end() if display else begin)
    return end.start() if end else len(text)


def items_below(text: str, begin: int) -> tuple[list[str], int]:
    """The items of a list that begins there, and where it ends: "- 7\\n- 8" -> ["7", "8"]."""
    items: list[str] = []
    while (bullet := _BULLET.match(text, begin)) and bullet[1] in (None, str(len(items) + 1)):
        items.append(bullet[2].strip())
        begin = bullet.end()
    return items, begin
