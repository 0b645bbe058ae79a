r"""Where a response states its answer: in `\boxed{…}`, after "Answer:" at the start of a line, else its last line.

    find_answer("2 are sold out.\nAnswer: 3").text        "3"
    find_answer("Answer: A\nAnswer: B").why               "several answers: A and B"

Only what follows the thinking counts. The label may be in any of `LABELS`' languages.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from foresail.maths.finding.boxes import find_boxes
from foresail.maths.finding.visible import SPECIAL_TOKEN
from foresail.maths.options import without_typeface
from foresail.records import final_text

LABELS = (
    "answer|final answer|jawaban|jawaban akhir|jawapan|jawapan akhir|คำตอบ|đáp án|trả lời|sagot|resposta"
    "|resposta final|答案|最终答案|respuesta|réponse|antwort|回答|답|답변"
)
LONGEST = 20_000  # characters of an answer; a longer text is none
MOST_LABELS = 64  # labels that are read, the last ones

_LABEL = re.compile(
    rf"^[ \t>*_#\-•]*+(?:{LABELS})[ \t]*+[*_]*+[ \t]*+[:：][ \t]*+[*_]*+", re.IGNORECASE | re.MULTILINE
)
_OUTSIDE = " \t\r\n*_`\"'“”‘’「」《》«»"
_SPACE = re.compile(r"\s+")


class FinalAnswer(NamedTuple):
    """`text` is the answer; without one, `why` says so, and `several` that there is more than one."""

    text: str | None
    why: str = ""
    several: bool = False


NOTHING = FinalAnswer(None, "no answer stands after the thinking")


def find_answer(response: str) -> FinalAnswer:
    final = visible_text(response)
    if not final:
        return NOTHING
    spans = [without_typeface(box.text) for box in find_boxes(final) if len(box.text) <= LONGEST]
    spans += [unboxed(line) for line in labelled(final)]
    if not spans:
        spans = [final.rstrip().rpartition("\n")[2]]
    spans = [span.strip() for span in spans]
    if not all(spans):
        return NOTHING
    different = {normalise(span): span for span in spans}
    if len(different) > 1:
        shown = " and ".join(span[:30] for span in list(different.values())[:3])
        return FinalAnswer(None, f"several answers: {shown}", several=True)
    return checked_length(spans[-1])


def find_object(response: str) -> FinalAnswer:
    """The text in which a JSON object stands: after the last label, else all of it."""
    final = visible_text(response)
    if not final:
        return NOTHING
    labels = list(_LABEL.finditer(final))
    return checked_length((final[labels[-1].end() :] if labels else final).strip())


def checked_length(text: str) -> FinalAnswer:
    if len(text) > LONGEST:
        return FinalAnswer(None, f"longer than {LONGEST} characters", several=True)
    return FinalAnswer(text) if text else NOTHING


def visible_text(response: str) -> str:
    final = final_text(response)
    return "" if final is None else SPECIAL_TOKEN.split(final, maxsplit=1)[0].strip()


def labelled(final: str) -> list[str]:
    """What stands after each label: on its line, else on the next that is not empty."""
    values = []
    for label in [*_LABEL.finditer(final)][-MOST_LABELS:]:
        end = final.find("\n", label.end())
        value = final[label.end() : end if end >= 0 else len(final)].strip()
        if not value.strip(_OUTSIDE) and end >= 0:
            following = final[end : end + LONGEST].lstrip()
            value = following.partition("\n")[0].strip()
        values.append(value)
    return values


def unboxed(text: str) -> str:
    boxes = find_boxes(text)
    return without_typeface(boxes[-1].text) if boxes else text


def normalise(text: str) -> str:
    """normalise(" “Blue.” ") -> "blue": width, case, spaces, quotes and a full stop at the end do not matter."""
    plain = unicodedata.normalize("NFKC", text)
    plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Cf")
    plain = _SPACE.sub(" ", plain).casefold().strip(_OUTSIDE)
    return plain.rstrip(".。").strip(_OUTSIDE) or plain
