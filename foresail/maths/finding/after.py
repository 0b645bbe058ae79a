r"""What is said after an answer: it may be taken back, or another value offered.

`\boxed{7} is wrong` and `\boxed{7}. Scratch that.` leave no answer; `\boxed{7}, or maybe 8` offers two values.
"""

from __future__ import annotations

import re

from foresail.maths.finding.answer_tags import tagged_answers
from foresail.maths.finding.cues import CLOSING, CUE, may_hold_cue, sentence_end, sentences
from foresail.maths.finding.phrases import (
    AND,
    CORRECTION,
    DOUBT,
    MODAL,
    NO,
    NOT_RIGHT,
    OR,
    TAKEN_BACK,
    WRONG,
    WRONG_UNSPACED,
)
from foresail.maths.finding.prefilter import UNSPACED, Prefilter, WordPattern, bits_in_sentence
from foresail.maths.finding.values import DENIED, all_values, stated_values, values_of
from foresail.maths.lexicon.table import compiled, pattern, spaced, unspaced, words_for

MAX_SENTENCES = 8  # sentences after an answer, and as many at the end
SENTENCE_CHARS = 300  # characters of each
AFTER_CHARS = 1_000  # characters after an answer that are looked at, and as many at the end of the text
OFFER_CHARS = 80  # characters after it in which a word may offer another value
CORRECTION_CHARS = 300  # characters after it in which a short English sentence may correct it
CORRECTION_WORDS = 14  # words of such a sentence; longer ones argue
OFFER_WORDS = 6  # words before a value that is offered
BRIEF_WORDS = 8  # words of a sentence that says nothing but that something is wrong

_WORDY = re.compile(r"[^\W\d_]{2,}|[\d\u0e00-\u0eff]")
# The rest of the formula that the answer stands in: `\boxed{7}\text{ cm}$ or $8$`.
_LEAVING = re.compile(r"((?:[^\w$\\\n]|\\[a-zA-Z]++(?:\{[^{}$]*+\})?+|\\[^a-zA-Z]|[\d_])*+)\$\$?")
_OFFERS = words_for("or", "correction")
_ALTERNATIVE = WordPattern(rf"{OR}|{CORRECTION}", _OFFERS)
_OR_BEFORE = WordPattern(rf"(?:{OR}|{CORRECTION})(?:\W+\w+){{0,3}}\W*\Z", _OFFERS)
_ROUGHLY = compiled(r"\b(?:about|approximately|roughly|around|nearly)\W*\Z|[≈~]\s*\Z")  # 2π, or about 6.28
_HASHES = re.compile(r"\s*####(?!#)")
_METHOD = compiled(
    r"\b(?:consider|not(?:e|ice)|observe|us(?:e|ing)|solv(?:e|ing)|recall|(?:verify|check|confirm)(?:ing)?"
    r"|comput(?:e|ing)|by|let|since|because|method|approach|we (?:can|could|may|might|note|see|know))\b"
)
_VALUE_ALONE = re.compile(r"[\s*$\\(\[-]*+\d[\d.,/]*+[\s*$\\)\].%]*+")
_VALUE_BELOW = re.compile(r"\n(?:[^\S\n]|[*$\\(\[#-])*+(?:[aA]\s*+[:：]\s*+)?\d|<")
_DIGITS_FIRST = re.compile(r"[^a-zA-Z\d\\]*+(?:(?:\\[a-zA-Z]++|\\[^a-zA-Z])[^a-zA-Z\d\\]*+)*+\d")
_AND_NUMBER = compiled(rf"[\s$*)}}\\]*+(?:{AND})[\s$*(\\]*+\d")
_VALUE_SIGN = re.compile(r"[\d$\\]")
_BEYOND_MARKS = re.compile(r"[^\s,;/|&()\[\]$*\\、，；]")
_MARKS = CLOSING + "\n.,;!。([{"
_DIGIT = re.compile(r"\d")
_WRONG = WordPattern(WRONG, words_for("wrong"))
_NOT_RIGHT = WordPattern(NOT_RIGHT, words_for("denial", "not right"))
_NO = compiled(rf"{NO}\W*\Z")
_TAKEN_BACK = WordPattern(TAKEN_BACK, words_for("taken back"))
_DOUBT = WordPattern(DOUBT, words_for("doubt"))
_REFERS = compiled(pattern("reference"))
_OF_OTHERS = compiled(pattern("others"))
# Linked to the answer, for "5 wrong answers" and "3 of them are false" say nothing of 5 and 3.
_WRONG_AT_ONCE = WordPattern(
    rf"^\W*(?:fails?|contradicts|violates)\b|(?:^[^\w$\\]*(?:{spaced('linking verb')})(?!\w)"
    rf"|[,;:(—–-]|\b(?:{spaced('subject')})(?!\w))"
    rf"(?:[^\w$\\]*+\b(?:{spaced('before wrong')})(?!\w))*+[^\w$\\]*+{WRONG}"
    rf"|^\W*(?:{spaced('only wrong')})\W*\Z|^\W*[是はがも은는이가]?\s*{WRONG_UNSPACED}"
    rf"|^\W*(?:(?:{unspaced('but')})\W*)?(?:{unspaced('subject')})"
    rf"[\s\u3040-\u9fff\uac00-\ud7ff]{{0,12}}?{WRONG_UNSPACED}"
    r"|^\W*(?!ข้อ)[\s\u0e00-\u0eff]{0,30}?ผิด",
    words_for("wrong"),
    marks=True,
)
_OFFERING = WordPattern(
    rf"\W*(?:(?:{spaced('lead-in')})\W+)?(?:{OR}|{CORRECTION})",
    _OFFERS,
    marks=True,
)
_MODAL_WORD = WordPattern(MODAL, words_for("modal"))
_MODAL = WordPattern(rf"(?:{MODAL})(?:\W+\w+){{0,3}}\W*\Z", words_for("modal"))
_CONFIRMED = compiled(rf"(?<![\\\w])(?:{spaced('confirmed')})\b|✓|✔|✅|{unspaced('confirmed')}")

# "… is too large", "… is half the answer", "… was only a guess": it is said not to be the answer.
_DISOWNED = compiled(
    r"\W*(?:(?:which|that|this|it)\s+)?(?:is|are|was|were|seems?|looks?|(?:would|must|may|might) be)\s+"
    r"(?:(?:just|only|merely|clearly|probably|obviously|also|far|much|way|still|an?|the|my|our)\s+)*"
    r"(?:too\s+(?:large|small|big|high|low|much|many|long|short|great|few)\b|not\W*\Z|unlikely\b"
    r"|(?:(?:first|initial|rough|wild)\s+)?(?:guess|trap|decoy|typo|overestimate|underestimate"
    r"|(?:upper|lower) bound)\b"
    r"|(?:twice|double|half|triple|thrice|(?:less|more|greater|smaller|larger|fewer|bigger|higher|lower) than"
    r"|(?:square|cube|root|divisor|multiple|factor|negative|opposite|reciprocal|double|half) of"
    r"|\w+ (?:more|less) than)"
    r"\s+(?:of\s+)?(?:(?:the|my|our)\s+)?(?:(?:final|correct|right|actual|real)\s+)?"
    r"(?:answer|result|solution|it\b|that\b|[b-hj-z]\b(?!['’]))|what (?:I|we) (?:first|initially|originally)\b)"
    r"|\W*(?:cannot|can[’']t|could not) be(?: (?:right|true|it|so|the answer))?\W*\Z"
    r"|\W*(?:(?:and|but)\s+)?(?:no|not|bukan|hindi|(?:không )?phải(?: không)?)\W*\Z"
    r"|\W*(?:itu|ini)\s+salah|\W*está mal"
    r"|\W*(?:exceeds|times|plus|minus|over) the (?:\w+ )?(?:answer|result)\b"
)

# A short English sentence after an answer also admits an error, or puts another value in its place.
_ADMITTED = compiled(
    r"\A[\s$*.)\\]*(?:(?:which|that|this|it)\s+)?(?:was|is|were|are|would be)\b[^.\n\d]{0,30}\b(?:wrong"
    r"|incorrect|false|mistaken|(?:an?|my) (?:error|mistake|blunder|lie|joke))\b|\bI (?:was|am"
    r"|have been) (?:wrong|mistaken|lying|kidding|joking)\b|\b(?:that|this|it|which) (?:is|was) (?:clearly "
    r"|just |only |actually )*(?:an?|my) (?:error|mistake|blunder|lie|joke)\b"
)
_NOT_ADMITTED = compiled(r"\b(?:not|n't|never|no longer)\b[^.\n]{0,20}\Z")
_REPLACED = compiled(
    r"\A\W*(?:but\s+)?(?:no|nope|wait|sorry|oops|whoops|correction|actually|hmm+|rather|instead|scratch that"
    r"|on second thoughts?|or rather|well)\b"
    r"|\b(?:should (?:have been|be|read)|I mean[t]?|(?:really|in fact) it is)\b"
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.](?=\d)[^.!?\n]*)*")
_CORRECTING = compiled(rf"\b(?:{spaced('correcting')})\b")
# Words of which each match of `_CORRECTING`, and of `_DISOWNED`, has one.
_MAY_CORRECT = Prefilter(words_for("correcting"))
_MAY_DISOWN = Prefilter(
    "is are was were seems? looks? would must may might cannot can could no not bukan hindi itu ini mal exceeds"
    " times plus minus over".split()
)
_TELLING = Prefilter(words_for("denial", "no", "or", "wrong", "correction", "telling"))


def offered_after(rest: str, answer: str = "") -> tuple[str, ...] | None:
    r"""The other values that what follows an answer offers; None where it takes the answer back.

    offered_after(" or 8.") -> ("8",); offered_after(". Wait, that is wrong.") -> None.
    """
    if not rest.strip(_MARKS):
        return ()
    if len(rest) > 2 * AFTER_CHARS:
        rest = rest[:AFTER_CHARS] + "\n" + rest[-AFTER_CHARS:]
    if "$" in rest and (leaving := _LEAVING.match(rest)):
        rest = leaving[1] + rest[leaving.end() :]
    if rest.lstrip(CLOSING).startswith(("?", "？", "✗", "✘", "❌")):
        return None
    if _may_hold(_MAY_CORRECT, rest):
        corrected = _corrected(rest[:CORRECTION_CHARS])
        if corrected is None or corrected:
            return corrected
    if _may_hold(_MAY_DISOWN, rest) and _DISOWNED.match(rest, 0, SENTENCE_CHARS):
        return None
    if not (
        may_change_answer(rest)
        or _DIGITS_FIRST.match(rest)
        or _AND_NUMBER.match(rest)
        or (("\n" in rest or "<" in rest) and _VALUE_BELOW.search(rest))
    ):
        return ()
    first, *later = (sentence[:SENTENCE_CHARS] for sentence in sentences(rest))
    later = later if len(later) <= 2 * MAX_SENTENCES else later[:MAX_SENTENCES] + later[-MAX_SENTENCES:]
    if _is_taken_back_at_once(first):
        return None
    others = list(_offered_at_once(first))
    if "\n" in rest and "\\begin" not in rest:
        lines = filter(_VALUE_ALONE.fullmatch, rest.split("\n")[1:])
        others += [line.strip(" \t*$\\()[].-") for line in lines]
    if "</" in rest:
        others += [
            value for tag in tagged_answers(rest) for value in stated_values(rest[tag.begin : tag.end])
        ]
    for place, sentence in enumerate(later):
        if not may_change_answer(sentence) and "####" not in sentence:
            continue
        if _takes_back(sentence, answer) and not any(map(_CONFIRMED.search, later[place + 1 :])):
            return None
        others += _offered(sentence, answer)
    return tuple(dict.fromkeys(others))


def _corrected(rest: str) -> tuple[str, ...] | None:
    """The values that a short sentence puts in an answer's place: "No, it is 8."; None for "It was a lie."."""
    if not _CORRECTING.search(rest):
        return ()
    others: list[str] = []
    for match in _SENTENCE.finditer(rest):
        sentence = match[0]
        if len(sentence.split()) > CORRECTION_WORDS:
            continue
        back = _ADMITTED.search(sentence)
        if back and not _NOT_ADMITTED.search(sentence[: back.end()].rsplit(" ", 1)[0]):
            return None
        if correction := _REPLACED.search(sentence):
            replacements = values_of(sentence[correction.end() :])
            others += [value.text for value in replacements[-1:]]
    return tuple(others)


def is_taken_back(rest: str) -> bool:
    """Whether what follows an answer takes it back."""
    first, *later = (sentence[:SENTENCE_CHARS] for sentence in sentences(rest))
    return _is_taken_back_at_once(first) or any(_takes_back(sentence, "") for sentence in later)


def _is_taken_back_at_once(rest: str) -> bool:
    """Whether the rest of the answer's own sentence takes it back: " is wrong", "? No", " (incorrect)"."""
    said = rest.lstrip(CLOSING)
    if said.lstrip("([（ ").startswith(("?", "？")):
        return True
    if not _WORDY.search(said) or not any(expression.search(said) for expression in _TAKING_BACK):
        return False
    ahead = values_of(said)  # of which something may be said in turn
    said = said[: ahead[0].start] if ahead else said
    return any(expression.search(said) for expression in _TAKING_BACK)


_TAKING_BACK = (_WRONG_AT_ONCE, _NOT_RIGHT, _TAKEN_BACK, _DOUBT)
# "This is not a mistake", but not "Oh no, I made a mistake".
_NOT_BEFORE = compiled(
    r"(?:\b(?:not|never|without|tidak|không|hindi|não|nicht|pas)|n[’']t)\b[^.,;:]{0,25}\Z|\bno \Z"
    r"|[没无不]\w{0,4}\Z|ไม่[^\s]{0,8}\Z"
)


def _takes_back(sentence: str, answer: str) -> bool:
    """Whether a later sentence takes the answer back: "Wait, that is wrong.", "Scratch that.", "No."."""
    if _TAKEN_BACK.search(sentence):
        return True
    words = len(sentence.split())
    brief = words <= BRIEF_WORDS
    if brief and answer and answer in sentence:
        named = [value for value in all_values(sentence) if value.text.strip("$") == answer.strip("$")]
        if any(DENIED.search(sentence[: value.start]) for value in named):
            return True
    asks = sentence.rstrip(CLOSING).endswith("?")
    if brief and not asks and _NO.search(sentence) and not _OF_OTHERS.search(sentence):
        return True
    wrong = _WRONG.search(sentence)
    if wrong and _NOT_BEFORE.search(sentence[: wrong.start()]):
        wrong = None
    if not (wrong or _NOT_RIGHT.search(sentence) or (brief and _DOUBT.search(sentence))):
        return False
    if values_of(sentence) or _OF_OTHERS.search(sentence):
        return False
    return words <= 3 or _REFERS.search(sentence) is not None


def _offered_at_once(rest: str) -> tuple[str, ...]:
    """Values that the answer's own sentence puts beside it: " or 8", ", maybe 8", " 8"."""
    if (cue := CUE.search(rest) if may_hold_cue(rest) else None) is not None:  # \boxed{7}, so the answer is 5
        said = rest[cue.end() : sentence_end(rest, cue.end())]
        return stated_values(said) if values_of(said) else ()
    is_joined = _AND_NUMBER.match(rest) is not None
    values = (
        values_of(rest)
        if is_joined or _DIGITS_FIRST.match(rest) or _ALTERNATIVE.search(rest[:OFFER_CHARS])
        else []
    )
    if not values:
        return ()
    between = rest[: values[0].start]
    if len(between) <= 60 and _OR_BEFORE.search(between) and not _ROUGHLY.search(between):
        return stated_values(rest[values[0].start :])
    bare = (is_joined or not _BEYOND_MARKS.search(between)) and not rest[values[-1].end :].strip(" .)]*$\\。")
    return tuple(value.text for value in values) if bare else ()


def _offered(sentence: str, answer: str) -> tuple[str, ...]:
    """Values that a later sentence offers as the answer, too: "Or 8.", "The answer is also 8."."""
    if not _VALUE_SIGN.search(sentence):
        return ()
    if hashes := _HASHES.match(sentence):
        return stated_values(sentence[hashes.end() :].strip())
    cue = CUE.search(sentence) if may_hold_cue(sentence) else None
    if cue and not _METHOD.search(sentence, 0, cue.start()):
        said = sentence[cue.end() : sentence_end(sentence, cue.end())]
        return stated_values(said) if values_of(said) else ()
    if not (_OFFERING.match(sentence) or _MODAL_WORD.search(sentence)) or _METHOD.search(sentence):
        return ()
    values = values_of(sentence)
    if not values or len(sentence[: values[0].start].split()) > OFFER_WORDS:
        return ()
    if _DIGIT.search(answer) and not _DIGIT.search(values[0].text):  # the point $M$
        return ()
    return (values[0].text,) if offers_another(sentence, values[0].start) else ()


def offers_another(sentence: str, value: int) -> bool:
    """Whether the sentence offers the value there beside what was said before: "Or 8.", "It could also be 8."."""
    return _OFFERING.match(sentence) is not None or _MODAL.search(sentence[:value]) is not None


def _may_hold(words: Prefilter, text: str) -> bool:
    """Like `may_hold`, and surely where words stand in apostrophes or in other scripts."""
    return bits_in_sentence(text) & words.bit != 0 or "'" in text or not text.isascii()


def may_change_answer(text: str) -> bool:
    """Whether what follows an answer is worth one: "square feet." is not, "Wait, that is wrong." is."""
    if bits_in_sentence(text) & _TELLING.bit:
        return True
    return not text.isascii() and UNSPACED.search(text) is not None
