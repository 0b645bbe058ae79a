"""Paragraphs of lines: joined across columns and pages, hyphens undone, headings by the size of letters.

join_lines([Line("A hyphen-"), Line("ated word."), …]) -> ["A hyphenated word.", …]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from foresail.curate.extract.pdf.glyphs import HYPHEN
from foresail.curate.extract.pdf.layout import Line

HYPHENS = (HYPHEN, "-", "\u00ad", "\u2010")
SENTENCE_END = tuple('.!?:;。！？…"”’»)')
BULLET = re.compile(r"(?:[•◦▪‣●○■–*·]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s")
WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
LAST_WORD, FIRST_WORD = re.compile(r"[^\W_]+$"), re.compile(r"[^\W_]+")
# scripts without spaces between words: Thai, Lao, Khmer, Burmese, kana, Han
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
LEADER = re.compile(r"(?:\s*\.){5,}|\s*…{2,}")  # of a table of contents
HEADING = 1.15  # times the size of the text
HEADING_CHARS = 160


def join_lines(pages: Sequence[Sequence[Line]], *, headings: bool = True) -> list[str]:
    """Paragraphs in reading order; `headings` puts "## " before lines in large letters."""
    lines = [line for page in pages for line in page]
    if not lines:
        return []
    words = Counter(word.lower() for line in lines for word in WORD.findall(line.text))
    size = body_size(lines)
    levels = heading_levels(lines, size) if headings else {}
    paragraphs: list[str] = []
    for group in group_lines(pages, size):
        text = join_words([line.text for line in group], words).replace(HYPHEN, "-")
        text = LEADER.sub(" …", text).strip()
        level = levels.get(rounded(group[0].size))
        if level and len(text) <= HEADING_CHARS and "\t" not in text and any(map(str.isalpha, text)):
            text = f"{'#' * level} {text}"
        if text:
            paragraphs.append(text)
    return paragraphs


def rounded(size: float) -> float:
    return round(size * 2) / 2


def body_size(lines: Sequence[Line]) -> float:
    """The size that most characters have."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[rounded(line.size)] += len(line.text)
    return sizes.most_common(1)[0][0]


def heading_levels(lines: Sequence[Line], size: float) -> dict[float, int]:
    large = sorted({rounded(line.size) for line in lines if line.size > HEADING * size}, reverse=True)
    return {one: min(level, 3) for level, one in enumerate(large, start=1)} if len(large) <= 8 else {}


def group_lines(pages: Sequence[Sequence[Line]], size: float) -> Iterator[list[Line]]:
    group: list[Line] = []
    for page in pages:
        pitch = line_pitch(page, size)
        lefts, rights = block_edges(page)
        for number, line in enumerate(page):
            before = group[-1] if group else None
            if before is not None:
                same_block = number > 0 and page[number - 1] is before and before.block == line.block
                new = (
                    begins_here(before, line, pitch, lefts[line.block], rights[line.block])
                    if same_block
                    else not continues(before, line)
                )
                if new:
                    yield group
                    group = []
            group.append(line)
    if group:
        yield group


def line_pitch(page: Sequence[Line], size: float) -> float:
    steps = [b.top - a.top for a, b in pairwise(page) if a.block == b.block and b.top > a.top]
    return median(steps) if steps else 1.2 * size


def block_edges(page: Sequence[Line]) -> tuple[dict[int, float], dict[int, float]]:
    """Where lines of each block begin, mostly, and how far they reach."""
    lefts: dict[int, list[float]] = {}
    rights: dict[int, float] = {}
    for line in page:
        lefts.setdefault(line.block, []).append(line.left)
        rights[line.block] = max(rights.get(line.block, 0.0), line.right)
    return {block: median(places) for block, places in lefts.items()}, rights


def begins_here(before: Line, line: Line, pitch: float, left: float, right: float) -> bool:
    """Whether a paragraph begins with this line, which lies below `before`."""
    size = max(line.size, 1.0)
    if ends_in_hyphen(before.text) and line.text[:1].islower() and 0 <= line.top - before.top < 2.5 * pitch:
        return False
    if LEADER.search(before.text) or LEADER.search(line.text):
        return True
    if abs(line.size - before.size) > 0.12 * size:
        return True
    if "\t" in line.text or "\t" in before.text:
        return True
    if line.top - before.top > 1.3 * pitch or line.top < before.top:
        return True
    if BULLET.match(line.text):
        return True
    if (
        line.left - before.left > 0.8 * size
        and line.left - left > 0.8 * size
        and not BULLET.match(before.text)
    ):
        return True
    # a last line is short: the first word of this line had fitted on it
    first_word = line.text.split(None, 1)[0] if line.text.strip() else ""
    width = (line.right - line.left) / max(len(line.text), 1)
    has_room = right - before.right > (len(first_word) + 2) * width and right - before.right > 2 * size
    return has_room and (before.text.endswith(SENTENCE_END) or right - before.right > 0.4 * (right - left))


def continues(before: Line, line: Line) -> bool:
    """Whether a paragraph goes on in the next column or on the next page."""
    if abs(line.size - before.size) > 0.12 * max(line.size, 1.0) or BULLET.match(line.text):
        return False
    if "\t" in line.text or "\t" in before.text:
        return False
    begin = line.text.lstrip("“\"'(")[:1]
    return ends_in_hyphen(before.text) or (not before.text.endswith(SENTENCE_END) and not begin.isupper())


def ends_in_hyphen(text: str) -> bool:
    return text.endswith(HYPHENS) and text[-2:-1].isalpha()


def join_words(lines: Sequence[str], words: Counter[str]) -> str:
    parts: list[str] = []
    for line in lines:
        line = line.strip(" ")
        if not line:
            continue
        if not parts:
            parts.append(line)
        elif ends_in_hyphen(parts[-1]) and line[:1].isalpha():
            parts[-1] = join_hyphen(parts[-1], line, words)
        elif UNSPACED.match(parts[-1][-1]) and UNSPACED.match(line[0]):
            parts[-1] += line
        else:
            parts.append(line)
    return " ".join(parts)


def join_hyphen(first: str, second: str, words: Counter[str]) -> str:
    """join_hyphen("a know-", "ledge") -> "a knowledge"; "well-" "known" stay "well-known" where that occurs."""
    stem = first[:-1]
    begin, end = LAST_WORD.search(stem), FIRST_WORD.match(second)
    if begin is None or end is None:
        return stem + "-" + second
    whole, apart = (begin[0] + end[0]).lower(), f"{begin[0]}-{end[0]}".lower()
    if words[whole] < words[apart] or (second[0].isupper() and not words[whole]):
        return stem + "-" + second
    return stem + second
