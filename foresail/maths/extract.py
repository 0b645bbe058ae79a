r"""Finding the final answer in a response.

Only text after the last `</think>` counts, and nothing does while a `<think>` is still open. There the last
`\boxed{…}` speaks. Where none stands, an answer may be stated ("the answer is 7", "#### 7"), and at the
most lenient be the last value of the last sentence. What is denied, doubted or taken back is no answer, and
values that are offered side by side are one answer together. Every rule is one pass over the text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from foresail.maths.finding.after import offered_after
from foresail.maths.finding.before import said_before
from foresail.maths.finding.boxes import (
    NEAR,
    Box,
    bare_box,
    find_boxes,
    is_part_of_formula,
    last_command,
    offered_together,
)
from foresail.maths.finding.statements import last_values, stated_answers
from foresail.maths.finding.visible import visible, without_rare_markup
from foresail.records import final_text

Accept = Literal["boxed", "stated", "any"]
Rule = Literal["boxed", "stated", "last value"]

AROUND = 300  # characters before the last box in which something may hide it

_SPECIAL_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>|</s>")


class Extracted(NamedTuple):
    """What a response gives as its answer and the rule that found it.

    `offered` are the values that stand side by side as this answer, `boxes` all distinct ones of the final text.
    """

    text: str
    rule: Rule
    offered: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()


def extract(response: str, accept: Accept = "any") -> Extracted | None:
    r"""extract(r"so \boxed{7}") -> 7, boxed; extract("#### 7") -> 7, stated; extract("7", "boxed") -> None.

    The last box speaks even when it is empty: `\boxed{7} or rather \boxed{}` has no answer.
    """
    final = final_text(response)
    if final is None:
        return None
    if "<" in final and ("<|" in final or "</s>" in final):
        final = _SPECIAL_TOKEN.split(final, maxsplit=1)[0] or final
    final = visible(final)
    if (last := last_command(final)) >= 0:
        start = max(0, last - AROUND)
        around = final[start:]
        if (seen := without_rare_markup(around)) != around:
            final = final[:start] + seen
            last = last_command(final)
    if last >= 0:
        return _standing_box(final, find_boxes(final, last), last)
    if accept == "boxed":
        return None
    stated = stated_answers(final)
    if stated is None:
        return None
    if stated:
        return _together(stated, "stated", stated)
    if accept == "any" and (values := last_values(final)):
        return _together(values, "last value", values)
    return None


def from_boxes(text: str) -> Extracted | None:
    r"""The last box, together with those offered beside it: `\boxed{1} and \boxed{2}` -> "1, 2"."""
    return _from(text, find_boxes(text))


def last_box(text: str) -> str | None:
    r"""The content of the last balanced box: last_box(r"\boxed{1}, no, \boxed{\{2\}}") -> r"\{2\}"."""
    found = find_boxes(text)
    return found[-1].text if found else None


def _from(text: str, boxes: list[Box]) -> Extracted | None:
    if not boxes:
        bare = bare_box(text)
        return Extracted(bare.text, "boxed") if bare else None
    if len(boxes) == 1:
        only = boxes[0].text
        return Extracted(only, "boxed", (only,), (only,)) if only else None
    run = offered_together(text, boxes, lambda box: said_before(text, box.start, box.end) is not None)
    answers = tuple(dict.fromkeys(box.text for box in run))
    if not answers[-1]:
        return None
    return _together(answers, "boxed", tuple(dict.fromkeys(box.text for box in boxes if box.text)))


def _together(answers: tuple[str, ...], rule: Rule, boxes: tuple[str, ...]) -> Extracted:
    return Extracted(", ".join(map(str.strip, answers)), rule, answers, boxes)


def _standing_box(text: str, boxes: list[Box], command: int) -> Extracted | None:
    r"""The last box unless it is ruled out or taken back, with the values offered beside it: `\boxed{7} or 8`.

    `command` is where the last one begins; one that is never closed says nothing, and the answer may go on there.
    """
    if boxes and command >= boxes[-1].end:
        boxes = []
    last = boxes[-1] if boxes else bare_box(text)
    if last is None or last.start > command or last.end <= command:
        return None
    before = said_before(text, last.start, last.end)
    while before is None and len(boxes) > 1 and last.start - boxes[-2].end <= NEAR:
        boxes.pop()  # \boxed{7}, not \boxed{8}
        last = boxes[-1]
        before = said_before(text, last.start, last.end)
    others = offered_after(text[last.end :], last.text)
    if before is None or others is None or is_part_of_formula(text, last.start, last.end):
        return None
    extracted = _from(text, boxes)
    if extracted is None or not before + others:
        return extracted
    answers = tuple(dict.fromkeys((*(extracted.offered or (extracted.text,)), *before, *others)))
    return _together(answers, "boxed", answers)
