r"""The letter of a multiple choice in a sentence: "D. It can't be A or B", "so I think it's (B)", "B is correct".

Other letters may be named only to rule them out. What takes the choice back or offers another leaves none.
"""

from __future__ import annotations

import re

from foresail.maths.finding.after import is_taken_back
from foresail.maths.finding.before import said_before
from foresail.maths.finding.cues import SENTENCES
from foresail.maths.finding.phrases import CORRECTION, DOUBT, OR
from foresail.maths.lexicon.table import compiled, spaced, unspaced

ANSWER_CHARS = 300  # characters of an answer that begins with its letter
DENIAL_CHARS = 60  # characters between a denial and the letter it rules out

_FIRST = compiled(
    r"[\s*(\[]*(?:(?:故|应|因此|所以)?选择?\s*)?"
    r"(?:(?:for sure|definitely|clearly|surely|certainly|option|choice|letter)\W+){0,3}[(*\[]*"
)
_LETTER = re.compile(
    r"([A-HJ])(?:[)*\]]+[.:,]?|[.:,，。](?!\d)|(?=\s*\Z)"
    r"|(?=\s*[(]?(?:不|非|non\b|not\b|pas\b|nicht\b|bukan\b|and not\b))"
    r"|(?=\s+(?:because|since)\b))"
)
_MARKED = re.compile(r"[\s*]*(?:\([A-HJ]\)|[A-HJ][).:])[\s*]")
_DIGIT = re.compile(r"\d")
_OTHER = re.compile(r"(?<![A-Za-z0-9'’$\\])[A-HJ](?![A-Za-z0-9'’])")
_DENIAL = compiled(
    rf"(?:\b(?:{spaced('rules out option')})\b|n[’']t\b|{unspaced('rules out option')})"
    rf"(?:(?!\bbut\b|\bhowever\b|\binstead\b)[^,;.!?\n]){{0,{DENIAL_CHARS}}}\Z"
)
_DENIED_AFTER = compiled(
    r"\s+(?:is|was|are|can)(?:\s?not|n[’']t|\s+(?:wrong|incorrect|false|invalid|out|impossible))\b"
)
_DOUBTFUL = compiled(DOUBT)
_JOINED = re.compile(r"\s*(?:,|or|nor|and|ou|或|和)\s*")
_UNCERTAIN = compiled(rf"{DOUBT}|{CORRECTION}|{OR}")
_REASON = compiled(
    r"[\s,.)*\]]*\b(?:because|since|as)\b(?![^\n]*\b(?:correct|right|true|best|answer|also)\b)"
)
_CORRECT = compiled(
    r"\W*(?:(?:so|therefore|thus|hence|then|clearly|i|we|think|believe|say|conclude|see|that|only|the|option|choice"
    r"|answer|statement|letter)\b[\s,:*]*){0,8}[(*\[]*(?P<letter>(?-i:[A-HJ]))[)*\]]*"
    r"\s+is\s+(?:the\s+)?(?:correct|right|best)(?:\s+(?:answer|option|choice|one))?[\s.!*]*"
    r"(?P<reason>,?\s*\b(?:because|since)\b[^?\n]{1,200})?"
)
_SAID_CORRECT = compiled(
    r"(?<![A-Za-z0-9'’$\\])(?P<letter>(?-i:[A-HJ]))[)*\]]*\s+is\s+(?:the\s+)?(?:correct|right|best)\b"
)
_CONCLUDES = compiled(
    r"(?:\A(?:it|this) (?:is|must be|has to be)|\Ait[’']s|\bit[’']s|\bjawab(?:an|annya)|\bjawapannya"
    r"|\b(?:think|believe|choose|pick|select|go(?:ing)? (?:with|for)|vote for|say|therefore"
    r"|thus|hence|so)\b,?)(?P<between>[^.!?\n,]{0,40}?)\s[(*\[]*(?P<letter>(?-i:[A-HJ]))[)*\]]*"
    r"(?P<rest>(?:[.,]\s*|\s+)[(]?(?:it|and not|but not|not|because|since|as|bukan|pas|nicht)\b"
    r"[^?\n]{0,80})?[.\s]*\Z"
)


def chosen_letter(text: str) -> str | None:
    """chosen_letter("D, it can't be A or B") -> "D"; None for "D or A", "D is wrong" and "D. Paris"."""
    first = _FIRST.match(text)
    letter = _LETTER.match(text, first.end() if first else 0)
    if letter is None:
        return None
    rest = text[letter.end() :]
    return letter[1] if not rest.strip(" .)*") or _rules_out(letter[1], rest) else None


def final_choice(text: str) -> str | None:
    """What a response without a box chooses: an option it begins with, or the letter it ends on; "" for several."""
    if len(text) <= ANSWER_CHARS and "?" not in text:
        if (letter := chosen_letter(text)) is not None:
            return letter
        if (option := _MARKED.match(text)) and not _DIGIT.search(text):
            rest = text[option.end() :]
            named = _OTHER.search(rest) or is_taken_back(rest) or _UNCERTAIN.search(rest)
            return "" if named else text
    if (correct := _called_correct(text[-ANSWER_CHARS:])) is not None:
        return correct
    last = _last(_CONCLUDES, text[-ANSWER_CHARS:].rpartition("\n")[2])
    if last is None or _OTHER.search(last["between"]) or _UNCERTAIN.search(last["between"]):
        return None
    sentence, rest = last.string, last["rest"] or ""
    if said_before(sentence, last.start("letter"), last.end("letter")) is None or _DOUBTFUL.search(sentence):
        return None
    return last["letter"] if not rest.strip(" .") or _rules_out(last["letter"], rest) else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The match that begins last: of "it's not A because …, therefore I think it's B" the second one."""
    last = match = pattern.search(text)
    while match:
        last, match = match, pattern.search(text, match.start() + 1)
    return last


def _called_correct(text: str) -> str | None:
    """_called_correct("A is wrong. So (B) is the right choice.") -> "B"; "" where two letters are called so."""
    *earlier, own = [sentence for sentence in SENTENCES.split(text) if sentence and sentence.strip()] or [""]
    match = _CORRECT.fullmatch(own)
    if match is None or _UNCERTAIN.search(match["reason"] or ""):
        return None
    others = _SAID_CORRECT.finditer("\n".join(earlier))
    return "" if any(other["letter"] != match["letter"] for other in others) else match["letter"]


def _rules_out(letter: str, rest: str) -> bool:
    """Whether the rest names other letters, and each of them only to rule it out: ", it can't be A or B"."""
    if _REASON.match(rest) and not _UNCERTAIN.search(rest):
        return True
    end = 0  # of the last letter that is ruled out
    for other in _OTHER.finditer(rest):
        denied = _DENIAL.search(rest[: other.start()]) or _DENIED_AFTER.match(rest, other.end())
        joined = end > 0 and _JOINED.fullmatch(rest, end, other.start())
        if other[0] == letter or not (denied or joined):
            return False
        end = other.end()
    return end > 0
