r"""Finding the final answer in a response.

Only text after the last `</think>` counts; a response whose `<think>` is still open has no answer. The last
`\boxed{…}` is the answer. Without a box it is what the text states ("the answer is 7", "#### 7") or, with
`accept="any"`, the last value of the last sentence. A value that is denied, doubted or taken back is no answer.
Values that are offered side by side are one answer together. Every rule is one pass over the text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from foresail.maths.finding.after import offered_after
from foresail.maths.finding.after_box import equal_after
from foresail.maths.finding.before import said_before
from foresail.maths.finding.before_box import is_free_before
from foresail.maths.finding.boxes import (
    NEAR_CHARS,
    Box,
    bare_box,
    find_boxes,
    is_redefined,
    last_command,
    offered_together,
)
from foresail.maths.finding.statements import last_values, stated_answers
from foresail.maths.finding.visible import SPECIAL_TOKEN, visible, without_rare_markup
from foresail.records import final_text

Accept = Literal["boxed", "stated", "any"]
Rule = Literal["boxed", "stated", "last value"]

AROUND_CHARS = 300  # characters before the last box in which something may hide it

_CLOSING = " \t\n$.,)]}\\*"  # all that follows most boxes
_ITEMS = re.compile(r"[^\s,;$]+")
_BEGINNING = re.compile(r"\A\s*<s>(?!.*</s>\s*\S)", re.DOTALL)  # a token, and no struck-out text: <s>7</s> 8


class Extracted(NamedTuple):
    """What a response gives as its answer and the rule that found it.

    `offered` are the values that stand side by side as this answer. They are one list where the text gives them as
    one; else each of them must be right.
    """

    text: str
    rule: Rule
    offered: tuple[str, ...] = ()
    is_list: bool = True


def extract(response: str, accept: Accept = "any") -> Extracted | None:
    r"""extract(r"so \boxed{7}") -> 7, boxed; extract("#### 7") -> 7, stated; extract("7", "boxed") -> None.

    The last box is the answer even when it is empty: `\boxed{7} or rather \boxed{}` has no answer.
    """
    final = final_text(response)
    if final is None:
        return None
    final = visible(final)
    if "<" in final and ("<|" in final or "s>" in final):
        final = _BEGINNING.sub("", final)
        final = SPECIAL_TOKEN.split(final, maxsplit=1)[0] or final
    if (last := last_command(final)) >= 0:
        seen = without_rare_markup(final, max(0, last - AROUND_CHARS))
        if seen is not final:
            final, last = seen, last_command(seen)
    if last >= 0:
        return _standing_box(final, find_boxes(final, last), last)
    if accept == "boxed":
        return None
    stated = stated_answers(final)
    if stated is None:
        return None
    if stated.values:
        return _together(stated.values, "stated", stated.is_list)
    if accept == "any" and (last_stated := last_values(final)).values:
        return _together(last_stated.values, "last value", last_stated.is_list)
    return None


def from_boxes(text: str) -> Extracted | None:
    r"""The last box, together with those offered beside it: `\boxed{1} and \boxed{2}` -> "1, 2"."""
    return _from(text, find_boxes(text))


def last_box(text: str) -> str | None:
    r"""The content of the last balanced box: last_box(r"\boxed{1}, no, \boxed{\{2\}}") -> r"\{2\}"."""
    boxes = find_boxes(text)
    return boxes[-1].text if boxes else None


def _from(text: str, boxes: list[Box]) -> Extracted | None:
    if not boxes:
        bare = bare_box(text)
        return Extracted(bare.text, "boxed") if bare else None
    if len(boxes) == 1:
        only = boxes[0].text
        return Extracted(only, "boxed", (only,)) if only else None
    offer = offered_together(text, boxes, lambda box: said_before(text, box.start, box.end) is not None)
    answers = tuple(dict.fromkeys(box.text for box in offer.boxes))
    return _together(answers, "boxed", offer.is_list) if answers[-1] else None


def _together(answers: tuple[str, ...], rule: Rule, is_list: bool = True) -> Extracted:
    if len(answers) == 1:
        return Extracted(answers[0].strip(), rule, answers)
    return Extracted(", ".join(map(str.strip, answers)), rule, answers, is_list)


def _standing_box(text: str, boxes: list[Box], command: int) -> Extracted | None:
    r"""The last box unless it is ruled out or taken back, with the values offered beside it: `\boxed{7} or 8`.

    `command` is where the last one begins; one that is never closed says nothing, and the answer may go on there.
    """
    if boxes and command >= boxes[-1].end:
        boxes = []
    last = boxes[-1] if boxes else bare_box(text)
    if last is None or last.start > command or last.end <= command:
        return None
    floor = _floor(boxes)
    before = said_before(text, last.start, last.end, floor)
    while before is None and len(boxes) > 1 and last.start - boxes[-2].end <= NEAR_CHARS:
        boxes.pop()  # \boxed{7}, not \boxed{8}
        last, floor = boxes[-1], _floor(boxes)
        before = said_before(text, last.start, last.end, floor)
    if before is None or not is_free_before(text, last.start, last.end, floor) or is_redefined(text, last):
        return None
    others = _said_after(text, last)
    extracted = _from(text, boxes) if others is not None else None
    if extracted is None or others is None:
        return None
    others += before
    if not others or _are_items(others, extracted.text):
        return extracted
    answers = tuple(dict.fromkeys((*(extracted.offered or (extracted.text,)), *others)))
    return _together(answers, "boxed", is_list=False)


def _said_after(text: str, box: Box) -> tuple[str, ...] | None:
    """The values that what follows a box offers beside it; None where it takes the box back or changes it."""
    rest = text[box.end :]
    if not rest.strip(_CLOSING):
        return ()
    equal = equal_after(text, box.start, box.end, box.text)
    others = offered_after(rest, box.text) if equal is not None else None
    return None if equal is None or others is None else others + equal


def _are_items(values: tuple[str, ...], answer: str) -> bool:
    """Whether the values are what the answer lists: 12 and 13 of "12, 13"."""
    return sorted(values) == sorted(item for item in _ITEMS.findall(answer) if item[-1].isdigit())


def _floor(boxes: list[Box]) -> int:
    """Where the box before the last one ends."""
    return boxes[-2].end if len(boxes) > 1 else 0
