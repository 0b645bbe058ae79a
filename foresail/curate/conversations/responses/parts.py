"""A response taken apart: its thought, its answer, and the answer without code, formulas and addresses.

read_response("<think>Add.</think>\n\nIt is 4: `2+2`.")
    -> Response(thought="Add.", answer="It is 4: `2+2`.", prose="It is 4:  .", …)
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# Accents in a row beyond these are cut: the time of normalize is quadratic in them.
ACCENTS = re.compile("([\u0300-\u036f]{16})[\u0300-\u036f]+")
BLANK = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u180e\ufe0e\ufe0f\x00-\x08\x0e-\x1f]")
THOUGHT = re.compile(
    r"\s*(?:<(?P<name>think|thinking|thought|reasoning|scratchpad|reflection|analysis)>|<\|begin_of_thought\|>|◁think▷)",
    re.IGNORECASE,
)
FENCE = re.compile(r"^[ \t>]{0,12}(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`\n]{1,300}`")
FORMULA = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\\\[.{1,2000}?\\\]|\\\(.{1,600}?\\\)|(?<![\w$])\$[^$\n]{1,200}\$(?![\w$])"
    r"|\\begin\{(\w{1,20}\*?)\}.{0,3000}?\\end\{\1\}",
    re.DOTALL,
)
ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]{1,500}|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}")
TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}>|&[a-z]{2,8};")


MARKED = (
    (("`",), INLINE_CODE),
    (("\\", "$"), FORMULA),
    (("://", "www.", "@"), ADDRESS),
    (("<", "&"), TAG),
)


class Fence(NamedTuple):
    start: int
    end: int
    length: int
    info: str


@dataclass(frozen=True, kw_only=True)
class Response:
    """`is_open_thought`: the thought has no end, and there is no answer."""

    text: str
    thought: str
    answer: str
    is_open_thought: bool

    @cached_property
    def fences(self) -> list[Fence]:
        if "```" not in self.answer and "~~~" not in self.answer:
            return []
        return [
            Fence(match.start(), match.end(), len(match[1]), match[2].strip())
            for match in FENCE.finditer(self.answer)
        ]

    @cached_property
    def outside_code(self) -> str:
        """The answer without blocks of code; one that is open reaches to the end."""
        parts, start, opened = [], 0, None
        for fence in self.fences:
            if opened is None:
                parts.append(self.answer[start : fence.start])
                opened = fence
            elif fence.length >= opened.length and not fence.info:
                start, opened = fence.end, None
        return "\n".join(parts) + ("" if opened is not None else self.answer[start:])

    @cached_property
    def prose(self) -> str:
        """Neither code, formulas, addresses nor tags."""
        text = self.outside_code
        for marks, pattern in MARKED:
            if any(mark in text for mark in marks):
                text = pattern.sub(" ", text)
        return text


def read_response(content: str) -> Response:
    text = normalised(content)
    opening = THOUGHT.match(text)
    if opening is None:
        return Response(text=text, thought="", answer=text.strip(), is_open_thought=False)
    name = opening["name"]
    if name is not None:
        closing = re.compile(rf"</{name}>", re.IGNORECASE).search(text, opening.end())
    else:
        closing = re.compile(r"<\|end_of_thought\|>|◁/think▷").search(text, opening.end())
    if closing is None:
        return Response(text=text, thought=text[opening.end() :].strip(), answer="", is_open_thought=True)
    return Response(
        text=text,
        thought=text[opening.end() : closing.start()].strip(),
        answer=text[closing.end() :].strip(),
        is_open_thought=False,
    )


def normalised(text: str) -> str:
    """Letters with their accents in one, line ends as "\\n", without signs that have no width."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text.replace("\0", "") if "\0" in text else text
    text = BLANK.sub("", text)
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", ACCENTS.sub(r"\1", text))
    return text


def words_in(text: str) -> int:
    """Words, where 1.5 characters of Han and kana and 4 letters of Thai count as one: words_in("你好吗") -> 2."""
    han = len(HAN.findall(text)) if not text.isascii() else 0
    thai = len(THAI.findall(text)) if not text.isascii() else 0
    spaced = UNSPACED.sub(" ", text) if han or thai else text
    return len(WORD.findall(spaced)) + round(han / 1.5) + round(thai / 4)


HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
THAI = re.compile("[\u0e00-\u0e7f]")
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def excerpt(text: str, length: int = 100) -> str:
    """On one line: what shows the fault."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def ending(text: str, length: int = 80) -> str:
    line = " ".join(text[-4 * length :].split())
    return line if len(line) <= length else f"…{line[1 - length :]}"
