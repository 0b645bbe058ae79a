"""What a response opens and does not close: a thought, a block of code, a formula, JSON, HTML.

open_part(read_response("So \\begin{align} x &= 1")) -> "\\begin{align} is open"
"""

from __future__ import annotations

import re

from foresail.curate.conversations.responses.parts import INLINE_CODE, Fence, Response, ending

ENVIRONMENT = re.compile(r"\\(begin|end)\{(\w{1,20}\*?)\}")
DISPLAY = re.compile(r"(?<!\\)\\([\[\]()])")
DOLLARS = re.compile(r"(?<![\\$])\$\$(?!\$)")
TEX = re.compile(r"\\[a-zA-Z]|[=^_]")
HTML = re.compile(
    r"\s*(?:<!DOCTYPE|<(?:html|head|body|div|table|svg|section|form|ul|ol|article|main|nav)\b)", re.IGNORECASE
)
CLOSED_TAGS = re.compile(
    r"<(/?)(html|head|body|div|table|tbody|thead|tr|svg|section|form|ul|ol|article|main|nav|script|style|p|h[1-6]|footer|header)\b[^<>]{0,1000}(/?)>",
    re.IGNORECASE,
)
JSON_START = re.compile(r"\s*(?:\{\s*(?:[\"'}]|$)|\[\s*[\[{\"\d])")
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[\[\]{}]', re.DOTALL)


def open_part(response: Response) -> str:
    """In words, or ""."""
    if response.is_open_thought:
        return f"the thought has no end: {ending(response.thought)}"
    if fence := open_fence(response.fences, len(response.answer)):
        return f"a block of code is open: ```{fence.info}"
    text = response.outside_code
    return open_formula(text) or open_json(text) or open_html(text)


def open_fence(fences: list[Fence], length: int) -> Fence | None:
    """Blocks inside blocks are read in two ways: a response is open if it is so in both."""
    flat: Fence | None = None
    nested: list[Fence] = []
    for fence in fences:
        if flat is None:
            flat = fence
        elif fence.length >= flat.length and not fence.info:
            flat = None
        if fence.info or not nested:
            nested.append(fence)
        else:
            nested.pop()
    if flat is None or not nested:
        return None
    # A bare fence at the very end closes something.
    return None if len(fences) > 1 and fences[-1].end >= length and not fences[-1].info else flat


def open_formula(text: str) -> str:
    if "\\" not in text and "$$" not in text:
        return ""
    text = INLINE_CODE.sub(" ", text) if "`" in text else text
    stack: list[str] = []
    for match in ENVIRONMENT.finditer(text):
        if match[1] == "begin":
            if match[2] == "document" and text[max(0, match.start() - 1) : match.start()].strip():
                continue  # a text names it: "behind \\begin{document}"
            stack.append(match[2])
        elif match[2] in stack:
            while stack.pop() != match[2]:
                pass
    if stack:
        return f"\\begin{{{stack[-1]}}} is open: {ending(text)}"
    opened = {"[": 0, "(": 0}
    for match in DISPLAY.finditer(text):
        sign = match[1]
        if sign in opened:
            opened[sign] = match.end()
        else:
            opened["[" if sign == "]" else "("] = 0
    for sign, place in opened.items():
        # "\[" without an end, far from the end of the text, is a slip and no cut.
        if place and TEX.search(text, place) and len(text) - place < 1500 and "\n\n" not in text[place:]:
            return f"\\{sign} is open: {ending(text)}"
    dollars = [match.end() for match in DOLLARS.finditer(text)]
    if len(dollars) % 2 == 1 and TEX.search(text, dollars[-1]) and "\n\n" not in text[dollars[-1] :].strip():
        return f"$$ is open: {ending(text)}"
    return ""


def open_json(text: str) -> str:
    if not JSON_START.match(text):
        return ""
    depth, is_open_text = 0, False
    for match in JSON_TOKEN.finditer(text):
        token = match[0]
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
            if depth <= 0:
                return ""
        else:
            is_open_text = len(token) == 1 or not token.endswith('"')
    return f"brackets are open: {ending(text)}" if depth > 0 or is_open_text else ""


def open_html(text: str) -> str:
    if "<" not in text or not HTML.match(text):
        return ""
    if text.rfind("<") > text.rfind(">"):
        return f"a tag is open: {ending(text)}"
    stack: list[str] = []
    for match in CLOSED_TAGS.finditer(text):
        name = match[2].lower()
        if match[3]:
            continue
        if not match[1]:
            if name not in ("p", "tr"):
                stack.append(name)
        elif name in stack[-40:]:
            while stack.pop() != name:
                pass
    return f"<{stack[-1]}> is open: {ending(text)}" if stack else ""
