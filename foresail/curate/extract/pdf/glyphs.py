"""Segments of a PDF page: characters that follow each other on one line without a wide gap, with their box.

page_segments(page) -> [Segment("Abstract", 72.0, 118.4, 690.2, 702.1), …]      in the order of the file

Boxes have their origin at the top left of the page as it is shown, in points: y grows downwards.
"""

from __future__ import annotations

from ctypes import byref
from typing import Any, NamedTuple

MAX_CHARS = 200_000  # of a page: more is a drawing
WIDEST_GAP = 1.0  # between words of one segment, in heights of the line
SPACE_GAP = 0.25  # that is a space although the file has none
LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
HYPHEN = "\x02"  # how pdfium writes a hyphen at the end of a line


class Segment(NamedTuple):
    text: str
    left: float
    right: float
    top: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def page_segments(page: Any) -> list[Segment]:
    import pypdfium2.raw as pdfium

    text_page = page.get_textpage()
    try:
        count = min(pdfium.FPDFText_CountChars(text_page), MAX_CHARS)
        if count <= 0:
            return []
        turn = Turn(page)
        builder = Builder()
        box = pdfium.FS_RECTF()
        get_code, get_box, raw = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetLooseCharBox, text_page.raw
        for index in range(count):
            code = get_code(raw, index)
            if code in (10, 13):
                builder.close()
            elif code in (9, 32, 160):
                builder.space = True
            elif (text := printable_glyph(code)) and get_box(raw, index, byref(box)):
                builder.add(text, *turn.box(box.left, box.right, box.top, box.bottom))
        builder.close()
        return builder.segments
    finally:
        text_page.close()


def printable_glyph(code: int) -> str:
    if code == 2:
        return HYPHEN
    if code < 32 or 0x7F <= code < 0xA0 or code in (0xFFFE, 0xFFFF, 0xFEFF) or 0xD800 <= code < 0xE000:
        return ""
    if code > 0x10FFFF:
        return ""
    letter = chr(code)
    return LIGATURES.get(letter, letter)


class Turn:
    """From the coordinates of the file to those of the page as it is shown."""

    def __init__(self, page: Any) -> None:
        left, bottom, right, top = page.get_cropbox()
        self.left, self.bottom, self.right, self.top = left, bottom, right, top
        self.rotation = page.get_rotation()

    def box(self, left: float, right: float, top: float, bottom: float) -> tuple[float, float, float, float]:
        match self.rotation:
            case 90:
                return bottom - self.bottom, top - self.bottom, left - self.left, right - self.left
            case 180:
                return self.right - right, self.right - left, bottom - self.bottom, top - self.bottom
            case 270:
                return self.top - top, self.top - bottom, self.right - right, self.right - left
        return left - self.left, right - self.left, self.top - top, self.top - bottom


class Builder:
    """Puts characters together; `space` is set where the file has one before the next character."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.space = False
        self.letters: list[str] = []
        self.left = self.last_left = self.right = self.top = self.bottom = 0.0

    def add(self, text: str, left: float, right: float, top: float, bottom: float) -> None:
        if self.letters:
            height = self.bottom - self.top
            overlap = min(bottom, self.bottom) - max(top, self.top)
            gap = left - self.right
            # the letters of a ligature have one box
            forward = gap > -0.5 * height or left >= self.last_left - 0.1 * height
            follows = overlap > 0.3 * min(height, bottom - top) and forward and gap < WIDEST_GAP * height
            if not follows:
                self.close()
            elif self.space or gap > SPACE_GAP * height:
                self.letters.append(" ")
        self.space = False
        if not self.letters:
            self.left, self.right, self.top, self.bottom = left, right, top, bottom
        self.letters.append(text)
        self.last_left = left
        self.right = max(self.right, right)
        # a superscript does not make its line higher
        if bottom - top > self.bottom - self.top:
            self.top, self.bottom = top, bottom

    def close(self) -> None:
        if self.letters and self.bottom > self.top:
            text = "".join(self.letters)
            self.segments.append(Segment(text, self.left, self.right, self.top, self.bottom))
        self.letters = []
        self.space = False
