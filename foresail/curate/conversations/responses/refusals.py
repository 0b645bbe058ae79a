"""Whether a response refuses, in eleven languages.

    refusal(read_response("I'm sorry, but I can't help with that."))               -> its opening words
    refusal(read_response("I'm sorry for the delay. Your parcel left today."))     -> ""
    refusal(read_response("As an AI I have no taste. Here are ten cakes: 1. …"))   -> ""    an answer follows

A refusal stands in the first sentences, in the first person, and is not followed by an answer: what comes behind it
is short, or offers, warnings and regrets. A response to a question that itself quotes or is about a refusal is
none. The words are in `refusals.toml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from foresail.curate.conversations.responses.parts import Response, excerpt, words_in
from foresail.curate.conversations.responses.words import any_of, compiled, words_of
from foresail.curate.language.sentences import split_sentences

OPENING = 4  # sentences
OPENING_LETTERS = 400
FAR = 14  # words before it that are no regret: then a story says it
NEAR = 60  # letters from "I cannot" to "help"
ANSWER_WORDS = 60  # behind a refusal: an answer
WEAK_ANSWER_WORDS = 25  # behind "I have no opinion"
ITEMS = 3
ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+\S", re.MULTILINE)
QUOTED = re.compile(r"[\"“«「『][^\"”»」』\n]{0,600}[\"”»」』]")


@dataclass(frozen=True, kw_only=True)
class Patterns:
    hints: re.Pattern[str]
    refuses: re.Pattern[str]
    lacks: re.Pattern[str]
    apology: re.Pattern[str]
    identity: re.Pattern[str]
    am: re.Pattern[str]
    beside: re.Pattern[str]
    turns: re.Pattern[str]


@cache
def patterns() -> tuple[Patterns, ...]:
    """Of each language."""
    patterns = []
    for table in words_of("refusals.toml").values():
        unable, help_ = any_of(table["unable"]), any_of(table["help"])
        own = {
            name: compiled(words)
            for name, words in table.items()
            if name not in ("unable", "help", "refuses")
        }
        refuses = rf"{unable}[^.!?。！？\n]{{0,{NEAR}}}?{help_}|{any_of(table['refuses'])}"
        patterns.append(Patterns(refuses=re.compile(refuses, re.IGNORECASE), **own))
    return tuple(patterns)


@cache
def hints() -> re.Pattern[str]:
    """Of all languages."""
    return compiled(word for table in words_of("refusals.toml").values() for word in table["hints"])


def refusal(response: Response, question: str = "") -> str:
    """Its opening, or ""."""
    answer = response.answer
    if not answer or answer[0] in "{[<|#`":
        return ""
    if hints().search(answer, 0, OPENING_LETTERS) is None:
        return ""
    sentences = split_sentences(answer[:OPENING_LETTERS])[:OPENING]
    opening = QUOTED.sub(" ", " ".join(sentences))
    for words in patterns():
        if words.hints.search(opening) and refuses_in(words, opening, response, question):
            return excerpt(answer, 160)
    return ""


def refuses_in(words: Patterns, opening: str, response: Response, question: str) -> bool:
    strong = words.refuses.search(opening)
    match = strong or words.lacks.search(opening)
    if match is None:
        return False
    before = opening[: match.start()]
    is_regret = any(one.search(before) for one in (words.apology, words.identity))
    if not is_regret and (strong is None or (words_in(before) > FAR and not words.am.search(before))):
        return False
    if words.refuses.search(question) or words.lacks.search(question):
        return False
    return not answers_after(words, response, is_strong=strong is not None)


def answers_after(words: Patterns, response: Response, is_strong: bool) -> bool:
    """Whether an answer follows: sentences that neither refuse, offer nor warn; a list; code."""
    if response.fences:
        return True
    if len(ITEM.findall(response.outside_code)) >= ITEMS:
        return words_in(response.answer) > ANSWER_WORDS
    count = 0
    for sentence in split_sentences(response.answer[:6000]):
        if words.refuses.search(sentence) or words.lacks.search(sentence) or words.am.search(sentence):
            turn = words.turns.search(sentence, len(sentence) // 3)
            if turn is not None and not words.refuses.search(sentence, turn.end()):
                count += words_in(sentence[turn.end() :])
        elif not words.apology.match(sentence) and not words.beside.search(sentence[:80]):
            count += words_in(sentence)
    return count >= (ANSWER_WORDS if is_strong else WEAK_ANSWER_WORDS)
