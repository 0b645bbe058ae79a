r"""Finding the final answer in a response.

Only text after the last `</think>` counts, and nothing does while a `<think>` is still open. There the last
`\boxed{…}` speaks. Where none stands, an answer may be stated ("the answer is 7", "#### 7"), and at the
most lenient be the last value of the last sentence. Every rule is one pass over the text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from foresail.rewards.statements import last_value, stated_answers

Accept = Literal["boxed", "stated", "any"]
Rule = Literal["boxed", "stated", "last value"]

# `\\` is a line break and `\{` a printed brace; neither opens a group. `\\boxed` is an over-escaped `\boxed`.
_BRACES = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\s*+\{|\\\\(?![bB]oxed|fbox|framebox)|\\[{}]|[{}]")
_BOX_COMMAND = re.compile(r"\\(?:[bB]oxed|fbox|framebox)")
_BARE_BOX = re.compile(r"\\(?:[bB]oxed|fbox|framebox)\s*+([^\s{}$\\]++|\\[a-zA-Z]++(?:\{[^{}]*+\})*+)")
_SPECIAL_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>|</s>")

_TOGETHER = re.compile(r"\band\b|\bor\b|[,;&]|与|和|或|、|，|；", re.IGNORECASE)
_ALTERNATIVE = re.compile(
    r"\balternativ|\bor\b|\beither\b|\b(?:could|might|may)\s+(?:also\s+)?be\b|\bpossibl[ey]\b|\banother\b|或者"
    r"|\bv(?:ersu)?s\b|\botherwise\b|\belse\b|\bif not\b|\bif (?:that|this|it) (?:is|does)(?: not|n't)"
    r"|\b(?:option|answer|solution|candidate|guess|possibility)\s*\#?\d",
    re.IGNORECASE,
)
# "If n is even, … If n is odd, …": two boxes that each depend on something.
_CONDITION = re.compile(r"\b(?:if|when|assuming|provided)\b[^.\n]{0,80}\Z", re.IGNORECASE)
_CONTRAST = re.compile(r"\bbut\b|\bhowever\b|\byet\b|\bthen I\b", re.IGNORECASE)
_ENUMERATOR = re.compile(r"\n\s*\(?(?:\d+|[a-zA-Z])[.):]")
_CORRECTION = re.compile(
    r"\bwait\b|\bwrong\b|\bmistake|\bactually\b|\binstead\b|\bcorrect(?:ed|ion|ing)\b|\bre-?check|\brecomput"
    r"|\bhmm|\boops\b|\brather\b|\bsorry\b|\bincorrect\b|\berror\b|\bno\s*[,:;—-]|\bshould (?:have been|be)\b"
    r"|不对|错|更正|修正",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:second|third|next|part|case)\b|\((?:i{1,3}|[a-e]|\d)\)", re.IGNORECASE)
_SAME_AGAIN = re.compile(
    r"^[\s$\\()\[\]]*(?:=|\\approx|≈|\\Rightarrow|⇒|\\to|→)[\s$\\()\[\]]*$"
    r"|(?<!\bif )\bthat is\b(?! not)"
    r"|\b(?:i\.e\.|equivalently|which (?:is|equals)|namely|in other words)\b", re.IGNORECASE
)  # fmt: skip
_WORDY = re.compile(r"[^\W\d_]{2,}|\d")
_TYPEFACE = re.compile(r"\\[a-zA-Z]+")
_WINDOW = 20_000  # characters around the last box that are looked at
_MOST = 64  # boxes that are looked at for belonging together
_NEAR, _FAR = 60, 400  # characters between two boxes that belong together, or may be offered as alternatives


class Extracted(NamedTuple):
    """What a response gives as its answer and the rule that found it.

    `offered` are the boxes that stand side by side as this answer, `boxes` all distinct ones of the final text.
    """

    text: str
    rule: Rule
    offered: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()


class _Box(NamedTuple):
    text: str
    start: int
    end: int


def extract(response: str, accept: Accept = "any") -> Extracted | None:
    r"""extract(r"so \boxed{7}") -> 7, boxed; extract("#### 7") -> 7, stated; extract("7", "boxed") -> None.

    The last box speaks even when it is empty: `\boxed{7} or rather \boxed{}` has no answer.
    """
    final = final_text(response)
    if final is None:
        return None
    if "<|" in final or "</s>" in final:
        final = _SPECIAL_TOKEN.split(final, maxsplit=1)[0] or final
    if ("box" in final or "Box" in final) and _BOX_COMMAND.search(final):
        return from_boxes(final)
    if accept != "boxed" and (stated := stated_answers(final)):
        return Extracted(", ".join(stated), "stated", stated, stated)
    if accept == "any" and (value := last_value(final)) is not None:
        return Extracted(value, "last value")
    return None


def final_text(response: str) -> str | None:
    """What follows the thinking: final_text("<think>3?</think> 4") -> " 4"; None while it has not ended."""
    final = response.rpartition("</think>")[2]
    return None if "<think>" in final else final


def from_boxes(text: str) -> Extracted | None:
    r"""The last box, together with those offered beside it: `\boxed{1} and \boxed{2}` -> "1, 2"."""
    found = _boxes(text)
    if not found:
        bare = [box[1] for box in _BARE_BOX.finditer(text)]
        return Extracted(bare[-1], "boxed") if bare else None
    run = [found[-1]]
    for earlier in reversed(found[-_MOST:-1]):
        between = text[earlier.end : run[0].start]
        before = text[max(0, earlier.start - _FAR) : earlier.start]
        if not _belong_together(between) and not (_CONDITION.search(before) and _CONDITION.search(between)):
            break
        run.insert(0, earlier)
    answers = list(dict.fromkeys(box.text for box in run))
    if not answers[-1]:
        return None
    distinct = tuple(dict.fromkeys(box.text for box in found if box.text))
    return Extracted(
        ", ".join(answers) if len(answers) > 1 else answers[0], "boxed", tuple(answers), distinct
    )


def last_box(text: str) -> str | None:
    r"""The content of the last balanced box: last_box(r"\boxed{1}, no, \boxed{\{2\}}") -> r"\{2\}"."""
    found = _boxes(text)
    return found[-1].text if found else None


def _boxes(text: str) -> list[_Box]:
    r"""The outermost boxes in order. A box that holds nothing but another box is the same as the inner one."""
    commands = [command.start() for command in _BOX_COMMAND.finditer(text)]
    if not commands:
        return []
    start = next(place for place in commands if place >= commands[-1] - _WINDOW)
    contents: dict[int, tuple[int, int]] = {}  # where a box's command begins -> the span inside its braces
    open_groups: list[re.Match[str]] = []
    for token in _BRACES.finditer(text, start, commands[-1] + _WINDOW):
        if token[0].endswith("{") and token[0] != r"\{":
            open_groups.append(token)
        elif token[0] == "}" and open_groups:
            opening = open_groups.pop()
            if opening[0] != "{":
                contents[opening.start()] = (opening.end(), token.start())
    boxes: list[_Box] = []
    for start, (inside, end) in sorted(contents.items()):
        if not boxes or start >= boxes[-1].end:
            boxes.append(_Box(_innermost(text, (inside, end), contents), start, end + 1))
    return boxes


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


def _belong_together(between: str) -> bool:
    """Whether two boxes are parts of one answer or offered side by side; a correction takes the first one back."""
    if len(between) > _FAR or _CORRECTION.search(between) or _SAME_AGAIN.search(between):
        return False
    if len(between) <= _NEAR:
        if _PARTS.search(between):
            return True
        bare = _ENUMERATOR.sub(" ", _TYPEFACE.sub(" ", between))
        new_sentence = re.search(r"[.!?。]\s", between) or _CONTRAST.search(between)
        if _TOGETHER.search(between) and not new_sentence:
            return True
        if not _WORDY.search(bare) and "\n\n" not in between.strip(" "):
            return True
    return bool(_ALTERNATIVE.search(between))
