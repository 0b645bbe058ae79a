"""Finding the program in a response: the last fenced block, after the thinking, in a language we run.

A fence is a line of three or more backticks or tildes, at any indentation; it ends at the next bare fence of
the same sign that is no shorter. One pass over the lines, so a response of any size is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from foresail.judge.programs.program import Language, Program
from foresail.records import final_text

TAGS: dict[str, Language] = {
    **dict.fromkeys(("python", "python3", "py", "py3"), "python"),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx"), "cpp"),
}
LANGUAGES: tuple[Language, ...] = ("python", "cpp")

# An opening fence may follow words on its line ("The code: ```python"); only blanks may stand before a closing one.
_FENCE = re.compile(r"^(?P<before>[^`~\n]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`\n]*+)$")
_TAG = re.compile(r"[^\s{:,]+")
_CPP_SIGN = re.compile(r"^[ \t]*+(?:#[ \t]*+include\b|using[ \t]++namespace\b)", re.MULTILINE)


class FencedBlock(NamedTuple):
    """A fenced block; `closed` is False when the response ends inside it."""

    tag: str
    text: str
    closed: bool


def find_program(response: str, languages: Sequence[Language] = LANGUAGES) -> Program | None:
    """find_program("So:\\n```python\\nprint(1)\\n```") -> Program(source="print(1)\\n", language="python").

    The last block tagged with a language we run is chosen; only where there is none, the last block without a
    tag. None while the thinking goes on, without a fence, when the chosen block is blank or cut off, and when its
    language is not among `languages`.
    """
    final = final_text(response)
    if final is None:
        return None
    blocks = list(read_blocks(final))
    tagged = [block for block in blocks if block.tag in TAGS]
    bare = [block for block in blocks if not block.tag and block.text.strip()]
    chosen = next(reversed(tagged or bare), None)
    if chosen is None or not chosen.closed or not chosen.text.strip():
        return None
    language = TAGS.get(chosen.tag) or guess_language(chosen.text)
    return Program(source=chosen.text, language=language) if language in languages else None


def guess_language(source: str) -> Language:
    """guess_language("#include <cstdio>") -> "cpp"; anything that shows no sign of C++ -> "python"."""
    return "cpp" if _CPP_SIGN.search(source) else "python"


def read_blocks(text: str) -> Iterator[FencedBlock]:
    """Every fenced block in order: "```py\\nx\\n```\\n~~~\\ny" -> ("py", "x\\n", True), ("", "y", False)."""
    opening: re.Match[str] | None = None
    body: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if opening is None:
            if match and (not match["before"].strip() or read_tag(match["info"]) in TAGS):
                opening, body = match, []
        elif match and closes(match, opening):
            yield FencedBlock(read_tag(opening["info"]), outdent(body, opening["before"]), True)
            opening = None
        else:
            body.append(line)
    if opening is not None:
        yield FencedBlock(read_tag(opening["info"]), outdent(body, opening["before"]), False)


def closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    bare = not fence["before"].strip() and not fence["info"].strip()
    return bare and fence["fence"].startswith(opening["fence"])


def read_tag(info: str) -> str:
    """read_tag(" Python title=x") -> "python"; read_tag("{.cpp}") -> "cpp"; read_tag("c++17") -> "c++"."""
    word = _TAG.search(info.strip().lstrip("{.")) if info.strip() else None
    if word is None:
        return ""
    tag = word[0].rstrip("}").lower()
    return re.sub(r"(?<=[p+x])(?:11|14|17|20|23)$", "", tag)


def outdent(lines: list[str], before: str) -> str:
    """A block inside a list item is indented as a whole; its program is not."""
    indent = before if not before.strip() else ""
    return "".join(line.removeprefix(indent) + "\n" for line in lines)
