"""Answers without a box: "the answer is 7", "#### 7", "答案是7", or merely the last value of the last sentence.

Cautious where a policy would cheat: questions, doubts and echoes of the prompt state nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.rewards.notation.answer import read

TAIL = 3_000  # characters at the end that are searched
LONG_SENTENCE = 500  # of which only the end is looked at
NEARBY = 120  # characters before a statement in which it may have been made already
SHORT = 200  # a response that may be an answer and nothing else

_HASHES = re.compile(r"^[ \t]*+####(?!#)(.*)$", re.MULTILINE)
_CUE = re.compile(
    r"(?:\bfinal\s+answer|\b(?:correct|right|best)\s+(?:answer|option|choice)|\b(?:option|choice)(?=\s+is)|\banswers?|"
    r"(?:^|(?<=\n))[*_ ]*(?:A|Ans)(?=[*_ ]*[:：])|最终答案|答案|答え|故选|应选)"
    r"(?:\s*\([^()\n]{0,30}\))?[*_ ]*(?:\s+to\s+[^.\n]{0,60}?)?"
    r"\s*(?:\b(?:is|are|was|equals|would be|must be|should be)\b|[:：=]|是|为|は)[*_ ]*"
    r"(?:therefore|thus|:|：|simply)?\s*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!](?=\s|$)|[。！]|\n")
_DISPLAY = re.compile(r"\s*(\\\[.*?\\\]|\$\$.*?\$\$|\\\(.*?\\\)|\$[^$]*\$(?!\d))", re.DOTALL)
_DOUBT = re.compile(
    r"\bnot sure\b|\bunsure\b|\bdo(?:n't| not) know\b|\bno idea\b|\bgive up\b|\bguess\b|\bcannot\b|\bcan't\b"
    r"|\bunable\b|\b(?:might|could|may) be\s+[-$\d\\(]|\bprobably\b|\bpossibly\b"
    r"|\bmaybe\b|\bperhaps\b|\bconsider(?:ed|ing)?\b|\bcontradiction\b|不知道|不确定",
    re.IGNORECASE,
)
# "x + 7" ends on a part of a formula, "not 7" on what is ruled out.
_DENIAL = re.compile(r"(?:\bnot|n't|≠|\\neq?|[+*/^×÷])\s*[$({]*$", re.IGNORECASE)
_OFFERED = re.compile(
    r"[^\w#]*(?:(?:alternatively|or|or else|possibly|another)\W*)?(?:so\s+|and\s+)?(?:the\s+)?", re.IGNORECASE
)
_BOUND = re.compile(
    r"\b(?:at (?:least|most)|(?:greater|less|more|fewer|larger|smaller|other) than|not necessarily"
    r"|above|below|between)\s*[$(]*$", re.IGNORECASE
)  # fmt: skip
_SUPPOSED = re.compile(r"\b(?:if|suppose|assume|assuming|whether)\b[^.\n]*\Z", re.IGNORECASE)
_SUPPOSITION = re.compile(r"\s*(?:suppose|assume|if|say)\b", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_COMMA_GROUP = re.compile(r"\s?\{\s*,\s*\}\s?")
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_NUMBER = (
    r"[-−]?\s?(?:[$€£¥₹]\s?)?(?<![\w.^{_])(?:\d[\d,.]*\d|\d|\.\d+)(?:\s*/\s*\d+)?"
    r"(?:\s?\\?%|\s?(?:percent|pct)\b)?"
)
_PROSE = re.compile(r"(?<![\\a-zA-Z{])[a-z]{2,}\s+[a-z]{2,}\s+[a-z]{2,}\b")
_ONE_WORD = re.compile(r"[^\W\d_]+[.!]?|\$+[^$]+\$+[.]?")
_VALUES = re.compile(
    r"\\\[(.+?)\\\]|\$\$(.+?)\$\$|\\\((.+?)\\\)|\$([^$]+)\$(?!\d)"
    rf"|(\(\s*{_NUMBER}(?:\s*,\s*{_NUMBER})+\s*\))"
    rf"|({_NUMBER}(?:\s*(?:,\s*and|,\s|and|or)\s*{_NUMBER}|\s{_NUMBER})*)",
    re.DOTALL,
)


def last_statement(text: str) -> str | None:
    """What the last "the answer is …", "Answer: …" or "#### …" says; None without one."""
    return ", ".join(stated_answers(text)) or None


def stated_answers(text: str) -> tuple[str, ...]:
    """The last statement, and those it stands beside: "The answer is 8. Or the answer is 7." -> 8, 7."""
    tail = text[-TAIL:]
    if "</" in tail and (tagged := _TAGGED.findall(tail)):
        return tuple(dict.fromkeys(answer.strip() for answer in tagged if answer.strip()))
    answers: list[str] = []
    later = len(tail)
    for start, end in _cues_from_the_end(tail):
        sentence = _first_sentence(tail[end:])
        if not sentence or sentence.endswith("?") or _is_supposed(tail, start):
            continue
        if answers and sentence not in tail[end:later]:  # Final answer: The final answer is 7
            continue
        if answers and not _OFFERED.fullmatch(tail[end:later].replace(sentence, "", 1)):
            break
        answers.insert(0, sentence if _BARE_NUMBER.fullmatch(sentence) else _stated_value(sentence))
        nearby = tail[max(0, start - NEARBY) : start].lower()
        if tail.startswith("#", start) or not ("answer" in nearby or "option" in nearby or "答案" in nearby):
            break
        later = start
    return tuple(dict.fromkeys(answers))


def _stated_value(sentence: str) -> str:
    """The value the sentence ends on; where it doubts, or has none, its words."""
    return (None if _DOUBT.search(sentence) else value_in(sentence)) or sentence


def _is_supposed(text: str, cue: int) -> bool:
    """Whether the statement at `cue` is only assumed: "If the answer is 7, …"."""
    if cue == 0 or text[cue - 1] == "\n":
        return False
    return _SUPPOSED.search(text, max(0, cue - 60), cue) is not None


def _cues_from_the_end(text: str) -> Iterator[tuple[int, int]]:
    """Where each cue starts and ends, the last one first; a line is searched only when it is reached."""
    end = len(text)
    while end > 0:
        start = text.rfind("\n", 0, end - 1) + 1
        cues = [(cue.start(), cue.end()) for cue in _CUE.finditer(text, start, end)]
        if hashes := _HASHES.match(text, start, end):
            cues.append((hashes.start(), hashes.start(1)))
        yield from sorted(cues, reverse=True)
        end = start


def last_value(text: str) -> str | None:
    """A response that is an answer and nothing else, or the last value of its last sentences."""
    whole = text.strip()
    if len(whole) <= SHORT and "?" not in whole and (_is_mathematics(whole) or _ONE_WORD.fullmatch(whole)):
        return whole
    sentences = [sentence for sentence in _sentences(text[-TAIL:]) if sentence.strip()]
    if any(_DOUBT.search(sentence) for sentence in sentences[-4:]):
        return None
    sentences = [sentence for sentence in sentences if not _SUPPOSITION.match(sentence)]
    for sentence in reversed(sentences[-4:]):
        if sentence.rstrip().endswith(("?", "？")):
            continue
        if (value := value_in(sentence)) is not None:
            return value
    return None


def value_in(sentence: str) -> str | None:
    """The value a sentence ends on: value_in("The volume of $ABC$ is 120") -> "120"."""
    sentence = sentence[-LONG_SENTENCE:]
    if "{" in sentence:
        sentence = _COMMA_GROUP.sub(",", sentence)
    if _is_mathematics(sentence):
        return sentence
    values = list(_VALUES.finditer(sentence))
    if not values:
        return None
    last = values[-1]
    before = sentence[: last.start()]
    if _DENIAL.search(before) or _BOUND.search(before):
        return None
    return next(group for group in last.groups() if group is not None).strip()


def _is_mathematics(text: str) -> bool:
    if _PROSE.search(text):
        return False
    readings = read(text)
    return bool(readings) and readings[0].head != "word"


def _first_sentence(text: str) -> str:
    """Up to the end of the sentence; a displayed formula that opens the text is taken whole."""
    if display := _DISPLAY.match(text):
        return display[1]
    text = text.lstrip()
    end = _SENTENCE_END.search(text)
    return (text[: end.start()] if end else text).strip().rstrip("*")


def _sentences(text: str) -> list[str]:
    """Sentences with the sign that ends them; a displayed formula may span lines."""
    return re.split(r"(?<=[.!?。！？])\s+|\n\s*\n", text)
