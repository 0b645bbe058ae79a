"""Whether a response was cut off: something is open, or its last line stops where no sentence does.

    cut_off(read_response("First, add both. Then you divide the"))      -> "stops in a sentence: … divide the"
    cut_off(read_response("```python\nprint(1"))                        -> "a block of code is open: ```python"
    cut_off(read_response("Paris"))                                     -> ""

A last line without a point is cut off only where the response's own lines have points, or where it ends in a word
that ends no sentence. Titles, names, numbers, formulas, lists without points, verse and code end as they like.
What is open is in `open_parts.py`, Thai, which has no points, in `thai_ends.py`, words in `completeness.toml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

from foresail.curate.conversations.responses.open_parts import open_part
from foresail.curate.conversations.responses.parts import HAN, THAI, Response, ending, words_in
from foresail.curate.conversations.responses.thai_ends import stops_in_word
from foresail.curate.conversations.responses.words import compiled, words_of

LINES = 60  # at the end, that are looked at
LETTERS = 4000
SENTENCE_WORDS = 4  # a line of fewer words is a title, a name, or an answer
LONG_SENTENCE = 40  # words without any point

FINAL = ".!?。！？…।؟｡．:："
CLOSERS = "\"'”’»›」』)]}>）】》〉*_~` \t"
JOINERS = ",;，；、([{（【“‘«「『《&+=<\\/–"
ITEM = re.compile(
    r"(?:[-*•+·–▪◦●○‣]|\(?\d{1,3}[.):、）]|\(?[a-zA-Z][.)]|[一二三四五六七八九十]{1,3}、|第.{1,3}[步章条])\s*"
)
EMPTY_ITEM = re.compile(r"(?:[-*•+]|\(?\d{1,3}[.)]|#{1,6})\s*(?:\*\*)?")
INNER_END = re.compile(r"(?:(?<![.\s][\w])(?<!\d)[.!?…][\"'”’)\]]*\s+(?=[^\W\d_a-z])|[。！？])")
ABBREVIATION = re.compile(
    r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Sra|Jr|No|vs|etc|e\.g|i\.e|z\.B|d\.h|bzw|ca|Nr|Bd|U\.S|a\.m|p\.m|ex|cf|hlm|dll|dsb|tp|TP|PGS|TS|BS|GS|Eng|Ir|approx|Inc|Ltd|Co)\.$"
)
LABEL = re.compile(r"[\w\s*()'’/&.-]{1,40}[:：]\s*\S{1,60}(?:\s\S{1,30}){0,4}$")
TAGGED = re.compile(r"#[^\W\d]\w*[^.!?#]{0,60}$")
STAGE = re.compile(r"(?<![*\w])\*[^*\n]{2,300}\*$")
SAID_BY = re.compile(r"(?:[.!?…\"”’»]|^)\s*[-–—~]{1,3}\s*[^\W\d_a-z][^.!?]{1,60}$")
ELISION = re.compile(r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’]$", re.IGNORECASE)  # "parce que l'"
LEFT_OUT = re.compile(r"\s*(?:\.\s?){3,}\s*|\s*…+\s*")
RULE = re.compile(r"\s*([-*_=~#─—])\s*(?:\1\s*)*")


def cut_off(response: Response, question: str = "", needs_points: bool = True) -> str:
    """What shows it, or "". Without `needs_points` the last sentence may lack its point."""
    if part := open_part(response):
        return part
    answer = response.answer
    if response.fences and response.fences[-1].end >= len(answer.rstrip()):
        return ""
    tail = answer[-LETTERS:]
    lines = [line for line in response.outside_code[-LETTERS:].split("\n") if line.strip()][-LINES:]
    if not lines or RULE.fullmatch(lines[-1]):
        return ""
    if (match := continued().search(tail[-200:])) and len(tail[-200:]) - match.end() <= 3:
        return f"it goes on elsewhere: {ending(match[0])}"
    last = lines[-1].strip()
    if len(lines) == 1 and last in question:
        return ""
    return last_line_fault(lines, needs_points)


def last_line_fault(lines: list[str], needs_points: bool) -> str:
    last = lines[-1].strip()
    before = lines[:-1]
    if ELISION.search(last):
        return f"stops in a word: {ending(last)}"
    if before and LEFT_OUT.fullmatch(last):
        return f"the last line is left out: {ending(' '.join(lines[-2:]))}"
    if before and EMPTY_ITEM.fullmatch(last) and any(EMPTY_ITEM.match(line.strip()) for line in before):
        return f"the last item is empty: {ending(' '.join(lines[-2:]))}"
    if fault := table_fault(before, last):
        return fault
    bare = without_emoji(last).rstrip(CLOSERS)
    if not bare:
        return ""
    final = bare[-1]
    closed = without_emoji(last).rstrip("*_~` \t")[-1:]
    if final in ":：":
        return colon_fault(before, last) if last.rstrip("*_~` ").endswith(final) else ""
    if final in FINAL:
        return ""
    if closed in JOINERS and closed == without_emoji(last)[-1:]:
        return joiner_fault(before, last)
    if not is_letter(final):
        return ""
    if closed in "\"'”’»」』)]}）】》`" and not opens_more(last):
        return ""
    if is_ending(before, last, bare):
        return ""
    return letter_fault(before, last, bare, needs_points)


def letter_fault(before: list[str], last: str, bare: str, needs_points: bool) -> str:
    """The last line ends in a letter."""
    marker = ITEM.match(last)
    content = bare[marker.end() :] if marker else bare
    count = words_in(content)
    if not content or is_address(last) or (LABEL.fullmatch(last) and count <= 8 and not marker):
        return ""
    stopped = f"stops in a sentence: {ending(last)}"
    if count > 2 and dangling_word(bare, before):
        return stopped
    if count > 2 and opens_more(last):
        return stopped
    if THAI.match(content[-1]):
        return stopped if stops_in_word(content) else ""
    if count < SENTENCE_WORDS or not needs_points:
        return ""
    if has_inner_end(content):
        return stopped
    peers = [line.strip() for line in before if is_peer(line, marker is not None)]
    ended = sum(ends_in_point(line) for line in peers)
    if len(peers) >= 2 and ended >= 0.75 * len(peers):
        return stopped
    if len(peers) == 1 and ended == 1 and not marker and count >= 2 * SENTENCE_WORDS:
        return stopped
    if not peers and count >= LONG_SENTENCE and not marker:
        return stopped
    return ""


def is_ending(before: list[str], last: str, bare: str) -> bool:
    """Hash tags, the name under a letter, who said a quotation, a title, a stage direction, a comment in code."""
    if TAGGED.search(last) or STAGE.search(last) or SAID_BY.search(bare):
        return True
    if last.startswith("**") and last.endswith("**") and last.count("**") == 2:
        return True
    if bare[:1] in "#" and before and looks_like_code(before[-1]):
        return True
    names = words_in(bare) <= 8
    if names and any(closings().fullmatch(line.strip().rstrip("*_ ,，.!！")) for line in before[-4:]):
        return True
    words = [word for word in re.findall(r"[^\W\d_]+", bare) if len(word) > 3]
    return names and len(words) > 1 and not has_inner_end(bare) and all(word[0].isupper() for word in words)


def is_peer(line: str, is_item: bool) -> bool:
    line = line.strip()
    marker = ITEM.match(line)
    if (marker is not None) != is_item or line.startswith(("#", "|", ">")):
        return False
    return words_in(line) >= SENTENCE_WORDS


def ends_in_point(line: str) -> bool:
    return without_emoji(line).rstrip(CLOSERS)[-1:] in FINAL


def has_inner_end(line: str) -> bool:
    """Whether a sentence ends inside: "It rains. So we" """
    return any(
        match[0] in "。！？" or not ABBREVIATION.search(line[max(0, match.start() - 6) : match.start() + 1])
        for match in INNER_END.finditer(line)
    )


def opens_more(line: str) -> bool:
    """Brackets, quotation marks or bold type that are not closed in the line."""
    for opening, closing in (("(", ")"), ("（", "）"), ("“", "”"), ("«", "»"), ("「", "」"), ("《", "》")):
        if line.count(opening) > line.count(closing) and line.rfind(opening) < len(line) - 1:
            return True
    return line.count("**") % 2 == 1 and not line.startswith("** ")


def colon_fault(before: list[str], last: str) -> str:
    """A form may end in a colon, and a request to the user."""
    if asks().search(last) or sum(line.strip().endswith((":", "：")) for line in before[-4:]) >= 2:
        return ""
    if looks_like_code(last):
        return ""
    if words_in(last) < 2 and not before:
        return ""
    return f"nothing follows the colon: {ending(last)}"


def joiner_fault(before: list[str], last: str) -> str:
    bare = last.rstrip("*_~` \t,;，；")
    if last[-1] in ",，" and (closings().fullmatch(bare) or (len(bare.split()) <= 4 and len(before) >= 2)):
        return ""
    if last[-1] in "/\\=<+&" or words_in(bare) < 2 or looks_like_code(last):
        return ""
    if ITEM.match(last) or len(before) >= 3:
        # Items and verses that all end in a comma.
        same = sum(line.rstrip().endswith(last[-1]) for line in before[-8:])
        if last[-1] in ",;，；" and same >= 0.5 * len(before[-8:]):
            return ""
    return f"stops at a joint: {ending(last)}"


def table_fault(before: list[str], last: str) -> str:
    if not last.startswith("|") or not before or not before[-1].strip().startswith("|"):
        return ""
    columns = before[-1].count("|")
    if last.count("|") < columns - ends_in_point(last.rstrip("|")):
        return f"the last row of a table is open: {ending(last)}"
    return ""


def looks_like_code(line: str) -> bool:
    return (
        re.search(r"[{};]\s*$|\w\([^()]*\)\s*[;{:,]?\s*$|[=<>]{2}|->|\bdef\b|\breturn\b|#include", line)
        is not None
    )


def dangling_word(bare: str, before: list[str]) -> bool:
    """The last word ends no sentence in the language that most of the words are of."""
    if THAI.match(bare[-1]):
        return bare.endswith(dangling("th"))
    if HAN.match(bare[-1]):
        return bare.endswith(dangling("zh"))
    words = re.findall(r"[^\W\d_]+", bare[-400:].lower())
    if not words or not bare.lower().endswith(words[-1]):
        return False
    last = words[-1]
    if bare[-len(last) :].isupper() and len(last) > 1:
        return False
    context = [*re.findall(r"[^\W\d_]+", "\n".join(before)[-1500:].lower()), *words[:-1]]
    languages = {name: words for name, words in dangling_sets().items() if last in words}
    if not languages:
        return False
    counts = {
        name: sum(word in own for word in context)
        for name, own in dangling_sets().items()
        if name not in ("th", "zh")
    }
    best = max(counts.values())
    return any(counts[name] >= max(2, 0.7 * best) for name in languages if name in counts)


@cache
def dangling_sets() -> Mapping[str, frozenset[str]]:
    return {name: frozenset(words) for name, words in words_of("completeness.toml")["dangling"].items()}


@cache
def dangling(language: str) -> tuple[str, ...]:
    return tuple(sorted(dangling_sets()[language]))


@cache
def continued() -> re.Pattern[str]:
    # The phrases have their own borders.
    return re.compile("|".join(words_of("completeness.toml")["continued"]["words"]), re.IGNORECASE)


@cache
def asks() -> re.Pattern[str]:
    return compiled(words_of("completeness.toml")["asks"]["words"])


@cache
def closings() -> re.Pattern[str]:
    return compiled(words_of("completeness.toml")["closings"]["words"])


def is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


def is_address(line: str) -> bool:
    word = line.split()[-1]
    return "/" in word or "@" in word or "#" in word or ("." in word and len(word) > 4)


def without_emoji(line: str) -> str:
    end = len(line)
    while end and (line[end - 1] in " \t" or unicodedata.category(line[end - 1]) in ("So", "Sk", "Cf", "Co")):
        end -= 1
    return line[:end]
