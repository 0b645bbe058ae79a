"""Answers without a box: "the answer is 7", "#### 7", "答案是7", or merely the last value of the last sentence.

A policy must not gain by hedging: questions, doubts and echoes of the prompt state nothing, several values are one
answer together, and a value that is taken back is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from foresail.maths.finding.after import is_taken_back, offered_after, offers_another
from foresail.maths.finding.answer_tags import tagged_answers
from foresail.maths.finding.before import said_before
from foresail.maths.finding.choices import chosen_letter, final_choice
from foresail.maths.finding.cues import SENTENCE_BREAK, cues_from_the_end, items_below, sentence_end
from foresail.maths.finding.phrases import CORRECTION, OR, STEP, UNDECIDED
from foresail.maths.finding.printed import printed_value
from foresail.maths.finding.values import (
    all_values,
    ending_values,
    is_about_another,
    is_one_formula,
    stated_values,
    values_of,
    without_lead,
)
from foresail.maths.finding.visible import without_marks
from foresail.maths.lexicon.table import compiled, spaced, unspaced

TAIL_CHARS = 3_000  # characters at the end that are searched
BETWEEN_CHARS = 60  # characters between two statements that are made side by side
BEFORE_CHARS = 120  # characters before a statement in which another may have been made
LABEL_CHARS = 6  # characters of "A: " or "#### ", before which nothing can be said in the line
MAX_SIDE_BY_SIDE = 16  # statements side by side
ENDING = " \n.。*$"  # what may end a response after a letter
MAX_CUES = 100  # cues that are looked at, from the end
ANSWER_CHARS = 200  # a response that may be an answer and nothing else
FRAME_WORDS = 6  # words around a value that make the same said twice
LAST_SENTENCES = 4  # sentences at the end in which a value is looked for

_DOUBT = compiled(UNDECIDED)
_CORRECTION = compiled(CORRECTION)
_REPLACING = compiled(rf"{STEP}|{spaced('last')}|{unspaced('last')}")
_OFFERING = compiled(rf"\W*(?:(?:and|so)\s+)?{OR}")
_SUPPOSED = compiled(r"\b(?:if|suppose|assume|assuming|whether)\b[^.\n]*\Z")
# Of "if …, then …" only what follows is said.
_SUPPOSITION = compiled(
    r"\A\s*(?:if\b(?![^\n]*\b(?:otherwise|else)\b)[^,\n]*,(?:\s*then\b)?|(?:if|suppose|assume|say)\b[^\n]*)"
)
_BARE_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_PLAIN = re.compile(r"(?:####|A:)[ \t]*(-?\d+(?:\.\d+)?)\s*\Z", re.ASCII)
_ONE_WORD = re.compile(r"[^\W\d_]+[.!]?|\$+[^$]+\$+[.]?")
_SENTENCES = re.compile(rf"{SENTENCE_BREAK}|\n\s*\n")
_CLAUSES = compiled(r"[,;，；]\s|[，；]|\b(?:and|while|but|whereas)\b")
_AGAIN = compiled(rf"(?:{spaced('also', 'likewise')})(?!\w)|{unspaced('also')}")
_ANOTHER = compiled(rf"(?:\b(?:{spaced('another')})|{unspaced('another')})\s*[^.\d\n]{{0,40}}\Z")
_AGAIN_OR_MARK = re.compile(r"\b(?:also|and|or|so|too)\b|也|[.,;!:。，；！]")
_WORDS = re.compile(r"[^\W\d_]{3,}")

Answers = tuple[str, ...]


class Stated(NamedTuple):
    """The values that are stated, and whether one statement lists them all: else each must be right by itself."""

    values: Answers
    is_list: bool = True


_NOTHING = Stated(())


def last_statement(text: str) -> str | None:
    """What the last "the answer is …", "Answer: …" or "#### …" says; None without one."""
    stated = stated_answers(text)
    return ", ".join(stated.values) or None if stated else None


def stated_answers(text: str) -> Stated | None:
    """The last statement, and those it stands beside: "The answer is 8. Or the answer is 7." -> 8, 7.

    Nothing without a statement; None where the last one is doubted, denied or taken back.
    """
    tail = text[-TAIL_CHARS:]
    if (plain := _plain_statement(tail)) is not None:
        return Stated(plain)
    if "</" in tail and (tagged := tagged_answers(tail)):
        return _side_by_side(tail, tagged)
    tail = without_marks(tail)
    places: list[tuple[int, int, int, int]] = []
    for start, begin in islice(cues_from_the_end(tail), MAX_CUES):
        begin, end = _sentence_at(tail, begin)
        if places and end > places[0][0]:  # the answer is 7 and the answer is 8
            end = places[0][0]
            if end - begin > BEFORE_CHARS or not values_of(
                tail[begin:end]
            ):  # Final answer: The final answer is 7
                continue
        if begin == end or tail[begin:end].endswith(("?", "？")) or _is_supposed(tail, start):
            continue
        if not places and is_about_another(tail, start):
            return None
        if places and not _may_stand_beside(tail, start, end, places[0][0]):
            break
        places.insert(0, (start, begin, end, end))
        if len(places) == MAX_SIDE_BY_SIDE or not _may_be_said_before(tail, start):
            break
    return _side_by_side(tail, places) if places else _NOTHING


def _plain_statement(tail: str) -> Answers | None:
    """The number of a last line "#### 7" or "A: 7", which many data sets train models to write; else None."""
    start = tail.rfind("\n", 0, len(tail.rstrip())) + 1
    line = _PLAIN.match(tail, start)
    return (line[1],) if line and not _may_be_said_before(tail, start) else None


def _sentence_at(text: str, begin: int) -> tuple[int, int]:
    begin = len(text) - len(text[begin:].lstrip())
    if _is_below(text, begin) and (listed := items_below(text, begin))[0]:
        return begin, listed[1]
    return begin, begin + len(text[begin : sentence_end(text, begin)].rstrip())


def _is_below(text: str, begin: int) -> bool:
    """Whether only blanks stand before `begin` in its line, so that a dash there opens an item and is no minus."""
    newline = text.rfind("\n", 0, begin)
    return newline >= 0 and not text[newline:begin].strip()


def _is_supposed(text: str, cue: int) -> bool:
    """Whether the statement at `cue` is only assumed: "If the answer is 7, …"."""
    if cue == 0 or text[cue - 1] == "\n":
        return False
    return _SUPPOSED.search(text, max(0, cue - 60), cue) is not None


def _may_be_said_before(text: str, start: int) -> bool:
    """A cheap look for another statement before this one."""
    if text.startswith("#", start):
        return text.rfind("####", 0, start) >= 0
    nearby = text[max(0, start - BEFORE_CHARS) : start]
    if not nearby.isascii():
        return True
    words = ("answer", "option", "a:", "jawa", "resp", "sagot", "antwort", "####")
    return any(map(nearby.lower().__contains__, words))


def _may_stand_beside(text: str, start: int, end: int, later: int) -> bool:
    """Whether what is said up to `end` is offered beside the statement at `later`."""
    if text.startswith("#", later):
        return text.startswith("#", start) and len(_WORDS.findall(text, start, end)) < 2
    between = text[end:later]
    return len(between) <= BETWEEN_CHARS and _REPLACING.search(between) is None


def _side_by_side(text: str, places: Sequence[tuple[int, int, int, int]]) -> Stated | None:
    """The values of statements (start, span of what is said, end): of the last one and of those beside it."""
    answers: list[str] = []
    is_list = True
    for number in range(len(places) - 1, -1, -1):
        _, begin, end, after = places[number]
        if answers and _CORRECTION.search(text, after, places[number + 1][0]):
            break
        said = _said(text, begin, end, "" if answers else text[after:])
        if said is None:
            if not answers:
                return None
            continue
        is_list = is_list and said.is_list and not (said.values and answers)
        answers[:0] = said.values
    return Stated(tuple(dict.fromkeys(answers)), is_list)


def _said(text: str, begin: int, end: int, rest: str) -> Stated | None:
    """What the statement says, with the values that `rest` after it offers, too; None where it does not stand."""
    said = without_marks(text[begin:end]).strip()
    if (
        _BARE_NUMBER.fullmatch(said)
        and not rest.strip()
        and begin - text.rfind("\n", 0, begin) <= LABEL_CHARS
    ):
        return Stated((said,))
    if said_before(text, begin, begin) is None:
        return None
    if (letter := chosen_letter(said)) is not None and not rest.strip(ENDING):
        return Stated((letter,))
    if _DOUBT.search(said):
        return None
    if _is_below(text, begin) and (items := items_below(said, 0)[0]):
        said = " ; ".join(items)
    values_said = values_of(said)
    if values_said and is_taken_back(said[values_said[0].end :]):
        return None
    others = offered_after(rest, said)
    if others is None:
        return None
    values = stated_values(said)
    if not values and all_values(said):
        return None
    *before, own = _SENTENCES.split(text[max(0, begin - BEFORE_CHARS) : begin])
    if before and (_AGAIN.match(said) or _ANOTHER.search(own) or _OFFERING.match(own)):
        others += ending_values(before[-1])  # 7. The answer is also 8. Another answer is 9
    return Stated((values or (said,)) + others, is_list=not others)


def last_values(text: str) -> Stated:
    """A response that is an answer and nothing else, or the last value of its last sentences."""
    whole = without_lead(without_marks(text[-TAIL_CHARS:])).strip()
    if (printed := printed_value(whole)) is not None:
        return Stated((printed,))
    if (choice := final_choice(whole)) is not None:
        return Stated((choice,)) if choice else _NOTHING
    if len(whole) <= ANSWER_CHARS and "?" not in whole:
        if _ONE_WORD.fullmatch(whole):
            return Stated((whole,))
        if is_one_formula(whole):
            parts = values_of(whole)
            return _NOTHING if parts and is_taken_back(whole[parts[0].end :]) else Stated((whole,))
    items = items_below(whole, 0)[0]
    if len(items) > 1 and all(map(is_one_formula, items)):
        return Stated(tuple(items))
    sentences = [sentence for sentence in _SENTENCES.split(whole) if sentence.strip()]
    if any(_DOUBT.search(sentence) for sentence in sentences[-LAST_SENTENCES:]):
        return _NOTHING
    sentences = [_SUPPOSITION.sub("", sentence) for sentence in sentences]
    for place in range(len(sentences) - 1, max(-1, len(sentences) - 1 - LAST_SENTENCES), -1):
        sentence = sentences[place]
        if sentence.rstrip().endswith(("?", "？")):
            continue
        if values := ending_values(sentence):
            earlier = sentences[place - 1] if place else ""
            return _ending(earlier, sentence, values, "\n".join(["", *sentences[place + 1 :]]))
    return _NOTHING


def _ending(earlier: str, sentence: str, values: Answers, rest: str) -> Stated:
    """The values a sentence ends on, with those offered in the sentence before and after it, if they stand."""
    end = sentence.rfind(values[-1]) + len(values[-1])
    if said_before(sentence, sentence.rfind(values[-1]), end) is None or is_taken_back(sentence[end:]):
        return _NOTHING
    others = offered_after(rest, values[-1])
    if others is None:
        return _NOTHING
    listed = values
    *before, clause = _CLAUSES.split(sentence)
    if before and _said_alike(before[-1], clause):  # method 1 gives 7, method 2 gives 8
        values = ending_values(before[-1]) + values
    if earlier and (offers_another(sentence, sentence.rfind(values[0])) or _said_alike(earlier, sentence)):
        values = ending_values(earlier) + values
    offered = tuple(dict.fromkeys(values + others))
    return Stated(offered, is_list=set(offered) == set(listed))


def _said_alike(one: str, other: str) -> bool:
    """Whether two values are given in the same few words: "It is 7." and "It is also 8."."""
    return "=" not in other and 0 < len(frame := _frame(other)) <= FRAME_WORDS and _frame(one) == frame


def _frame(sentence: str) -> list[str]:
    """The words around the values, to see the same said twice: "It is 7." -> [It, is, .]."""
    for value in reversed(values_of(sentence)):
        sentence = sentence[: value.start] + " " + sentence[value.end :]
    return _AGAIN_OR_MARK.sub(" ", sentence.lower()).split()
