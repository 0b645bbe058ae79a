r"""Short answers in words, as question answering has them: a name, a place, a date, yes or no.

A response is right if its answer, as a whole, is one of the accepted ones after SQuAD's normalisation: case,
punctuation and articles do not matter. What is said beside the right answer makes it wrong: "Paris or London",
"not Paris", the question again. The verdict's term `f1` is the
token F1 with the best of the accepted answers. It is no reward: a list of guesses raises it.

Where that normalisation would make different answers equal, it is not followed: 1.5 is not 15, -5 not 5, 1/2 not
12, C++ not C, and Vitamin A not Vitamin.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from foresail.maths.finding.answer_tags import TAG, tagged_answers
from foresail.maths.finding.boxes import find_boxes
from foresail.maths.finding.visible import SPECIAL_TOKEN
from foresail.maths.options import without_typeface
from foresail.records import Verdict, final_text

SHOWN_CHARS = 60  # characters of each side that `detail` keeps

_STATED = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s++)?(?:the\s++)?(?:final\s++|correct\s++)?answer\s*+(?:is\b|:)[\s:]*+",
    re.IGNORECASE,
)
_TO_LAST_LETTER = re.compile(r".*\w", re.DOTALL)

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DASH = re.compile("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b(?=\s+\S)")
# A decimal point, a sign before a number, the signs of C++ and C# are kept.
_SIGN = re.compile(r"((?<=\d)\.(?=\d)|(?<!\w)-(?=\d)|(?<=\w)[+#]+)|[^\w\s]|_")
_YES_NO = frozenset({"yes", "no", "noanswer"})


def grade(response: str, accepted: Sequence[str]) -> Verdict:
    """grade("<answer>the Eiffel tower</answer>", ["Eiffel Tower"]) -> correct; f1 is one of its terms."""
    accepted = [answer for answer in accepted if answer.strip()]
    if not accepted:
        return Verdict(status="ungradable", score=0.0, detail="the problem's answer is empty")
    spans = find_answers(response)
    if not spans:
        return Verdict(
            status="unparsable",
            score=0.0,
            detail="no answer that stands after the thinking",
            terms={"f1": 0.0},
        )
    answers = {normalise(span): span for span in spans}
    if len(answers) > 1:
        shown = " and ".join(shorten(span) for span in list(answers.values())[:3])
        return Verdict(status="wrong", score=0.0, detail=f"several answers: {shown}", terms={"f1": 0.0})
    (text, span), golds = next(iter(answers.items())), [normalise(answer) for answer in accepted]
    right, f1 = text in golds, max(token_f1(text, gold) for gold in golds)
    best = accepted[0] if not right else accepted[golds.index(text)]
    return Verdict(
        status="correct" if right else "wrong",
        score=float(right),
        detail=f"{shorten(span)} against {shorten(best)}, F1 {f1:.2f}",
        terms={"f1": f1},
    )


def ballot(response: str) -> str | None:
    """What a response votes for, equal where `grade` sees equal answers; None where it gives none, or several."""
    answers = {normalise(span) for span in find_answers(response)}
    return answers.pop() if len(answers) == 1 else None


def find_answers(response: str) -> list[str]:
    r"""What stands in <answer>…</answer> and in boxes; else the last line, without "The answer is".

    find_answers(r"So <answer>Paris</answer>, or \boxed{Rome}") -> ["Paris", "Rome"]. Empty while the thinking or
    the last tag is open, and where an answer is empty: what is cut off is no answer.
    """
    final = final_text(response)
    if final is None:
        return []
    final = SPECIAL_TOKEN.split(final, maxsplit=1)[0]
    spans: list[str] = []
    outside, end = [], 0
    for start, begin, close, after in tagged_answers(final):
        spans += TAG.split(final[begin:close])
        outside.append(final[end:start])
        end = after
    rest = "\n".join([*outside, final[end:]])
    if TAG.search(rest):
        return []
    spans = [unboxed(span) for span in spans] + [without_typeface(box.text) for box in find_boxes(rest)]
    if not spans:
        lines = [line for line in rest.splitlines() if line.strip()]
        spans = [without_lead(lines[-1])] if lines else []
    stripped = [span.strip() for span in spans]
    return stripped if all(stripped) else []


def without_lead(line: str) -> str:
    """without_lead("So the answer is: Paris") -> "Paris"; signs that stand before it go with it."""
    lead = _STATED.search(line)
    if lead is None:
        return line
    before = _TO_LAST_LETTER.match(line, 0, lead.start())
    return (before[0] if before else "") + line[lead.end() :]


def unboxed(span: str) -> str:
    r"""unboxed(r" \boxed{\text{Paris}} ") -> "Paris"; a box beside other words stays as it is."""
    boxes = find_boxes(span)
    whole = len(boxes) == 1 and not (span[: boxes[0].start] + span[boxes[0].end :]).strip(" .$\n")
    return without_typeface(boxes[0].text) if whole else span


def normalise(text: str) -> str:
    """normalise("The U.S., 1939–45") -> "us 1939 45"; what would be empty so stays as it is, in lower case."""
    text = text if text.isascii() else "".join(map(expand, text))
    text = _DASH.sub("-", text.casefold())
    text = " ".join(text.split())
    plain = _ARTICLE.sub(" ", without_punctuation(_THOUSANDS.sub("", text)))
    return " ".join(plain.split()) or text


def expand(character: str) -> str:
    """Full-width letters as usual ones; x² as "x 2", which x2 is not; nothing for what has no width."""
    if character.isascii():
        return character
    kind = unicodedata.decomposition(character).partition(" ")[0]
    apart = " " if kind in ("<super>", "<sub>", "<fraction>") else ""
    if unicodedata.category(character) == "Cf":
        return ""
    return apart + unicodedata.normalize("NFKC", character)


def without_punctuation(text: str) -> str:
    """Deleted, but a space between two digits: 10:30 is not 1030."""
    return _SIGN.sub(without_sign, text)


def without_sign(sign: re.Match[str]) -> str:
    if sign[1] or not is_punctuation(sign[0]):
        return sign[0]
    text, place = sign.string, sign.start()
    return " " if text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit() else ""


def is_punctuation(character: str) -> bool:
    """SQuAD's, which is all of ASCII that is no letter, digit or space, and that of other scripts."""
    if character.isascii():
        return not character.isalnum() and not character.isspace()
    return unicodedata.category(character).startswith("P")


def token_f1(candidate: str, gold: str) -> float:
    """Of normalised texts: token_f1("city of paris", "paris") -> 0.5. Yes and no share nothing with other words."""
    if candidate == gold:
        return 1.0
    if candidate in _YES_NO or gold in _YES_NO:
        return 0.0
    ours, theirs = Counter(candidate.split()), Counter(gold.split())
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total())


def shorten(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
