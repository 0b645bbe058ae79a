r"""Words beside a box that make another value of it: "twice \boxed{7}", "\boxed{7} million", "\boxed{7} over 2".

Values without a box have stricter rules (`values.py`). Worked solutions state 7 by "a sum of \boxed{7}", "at least
\boxed{7}", "all but \boxed{7}", "\boxed{7} prime numbers" and "\boxed{7} million tons are", so these are 7.
"""

from __future__ import annotations

import re
from functools import lru_cache

from foresail.maths.finding.phrases import NUMBER_AFTER
from foresail.maths.lexicon.table import compiled, pattern, spaced, unspaced, words_for
from foresail.maths.notation.nouns import OPERATORS, names_things
from foresail.maths.notation.number_words import NUMBER_WORDS, PARTS, SCALES
from foresail.maths.notation.units import is_unit
from foresail.maths.notation.vocabulary import word_set

REACH_CHARS = 80  # characters that are looked at
MAX_WORDS = 8  # words and marks behind a box, and as many words before it

# Before a box.

# What the box itself may be: "a quotient of \boxed{7}", "the point \boxed{(1,2)}", "in base \boxed{7}".
_NAMES = word_set("""
    point base debt close except one loss deficit exponent power root percentage prime infinite conjugate inverse
    reciprocal logarithm opposite above logarithms modulo mod bar its
""")
_OPERATIONS = (
    (OPERATORS - _NAMES)
    | set(words_for("operator"))
    | word_set("times below under beneath beyond exceed exceeds exceeding half")
)
_FOREIGN_NUMERALS = frozenset(words_for("numeral"))
_NUMERALS = (NUMBER_WORDS - PARTS.keys() - {"one", "first", "second", "score"}) | _FOREIGN_NUMERALS
_KNOWN_NUMERALS = NUMBER_WORDS | set(words_for("numeral", "one"))
# Taken of the box: "the square of \boxed{7}".
_TAKEN_OF = (
    frozenset(words_for("operation"))
    | word_set("""
    square squares cube cubes root roots sqrt reciprocal inverse opposite negative negation negated conjugate log ln
    logarithm factorial half third quarter double triple quadruple twice thrice sin cos tan sine cosine tangent
    exponent exponential power percent percentage multiple complement digits divisors successor predecessor
    transpose reverse
""")
    | _NUMERALS
    | PARTS.keys()
    | {f"{part}s" for part in PARTS}
)
_UNARY = word_set("minus plus negative times twice double triple half over")  # "double the \\boxed{7}"
# Of two numbers: "the sum of 3 and \boxed{7}", "3 and \boxed{7}" being two answers.
_OF_TWO = word_set("""
    sum product difference quotient gcd lcm hcf gcf maximum minimum max min ratio remainder average mean
""")
_ROUND = word_set("hundred thousand million billion trillion dozen")
_PAIRS = frozenset({
    ("square", "root"), ("cube", "root"), ("lớn", "hơn"), ("nhỏ", "hơn"), ("bé", "hơn"),
    ("unequal", "to"), ("different", "from"), ("distinct", "from"), ("number", "after"), ("number", "before"),
    ("integer", "after"), ("integer", "before"), ("number", "following"), ("number", "preceding"),
} | {
    (word, "than") for word in (
        "more less fewer greater larger smaller bigger higher lower older younger taller longer shorter lesser"
    ).split()
})  # fmt: skip
_PERCENT_OF = compiled(r"(?:[\d%}]|\bper ?cent)\s*of(?: the)?\W*\Z")
_OPERATION_BY = compiled(
    rf"\b(?:divid|divisé|geteilt|multipl|subtract)\w*[^.,;:\n]{{0,25}}\b(?:{spaced('by')})\W*\Z|\badd\w*\s+\S*\d\S*\s+to\W*\Z"
    r"|\b(?:short|to the power) of\W*\Z|\bto the power\W*\Z"
)
_FOREIGN = compiled(
    rf"(?:{pattern('number before', 'operation of value')}|{unspaced('phrase before')})[\s$*\\(\[]*\Z"
)
_CLAUSE_BREAK = re.compile(r"[,;:=?!$\\(){}<>]|\.(?!\d)")
_SPOKEN = re.compile(r"\d[\d.,]*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_OF_NUMBERS = frozenset(words_for("operator after number"))  # "3 fois 7"
_AND_WORDS = {*spaced("and").split("|"), "to"}
_ELISION = re.compile(r"\b[dl]['’]")  # "l'inverse de"
_OF = frozenset(words_for("of"))
_FILLERS = _OF | set(words_for("article"))
_CLOSING = _FILLERS | {*words_for("by"), "power"}  # which an operation may end on
_SAYS_WORDS = re.compile(r"[\s,.:;]*(?:[^\W\d_]{2,}|[aA])(?:[\s,.:;'’-]+(?:[^\W\d_]+|\([a-z]\)))*[\s,.:;=]*")


def changed_by_words_before(lead: str) -> bool:
    """changed_by_words_before("So it is minus") -> True; ("a sum of") -> False."""
    clause = lead[-REACH_CHARS:].replace("\n", " ").rstrip(" $*\\([{_`'\"")
    if not clause.isascii() and _FOREIGN.search(clause):
        return True
    said = _CLAUSE_BREAK.split(clause)[-1]
    words = _SPOKEN.findall(_ELISION.sub(" ", said.lower()))[-MAX_WORDS:]
    if not words or not clause[-1:].isalpha():
        return clause.endswith("%") and _PERCENT_OF.search(clause) is not None
    last = words[-1]
    if last in _OPERATIONS or last in _NUMERALS or tuple(words[-2:]) in _PAIRS:
        return True
    if last in _CLOSING and (_PERCENT_OF.search(clause) or _OPERATION_BY.search(clause)):
        return True
    return _is_of_numbers(words) or _is_taken_of(words)


def _is_of_numbers(words: list[str]) -> bool:
    """Whether a number goes on into the box: "zero point", "two to the", "one hundred and", "the sum of 3 and"."""
    *before, last = words
    if last == "the" and before[-1:] == ["to"] and len(before) > 1:
        return _is_numeral(before[-2]) or before[-2] in ("e", "x")
    if not before or not _is_numeral(before[-1]):
        return False
    if last in _OF_NUMBERS:
        return True
    if last not in _AND_WORDS:
        return False
    is_round = before[-1] in _ROUND or before[-1] in _FOREIGN_NUMERALS
    return is_round or not _OF_TWO.isdisjoint(before[-4:-1])


def _is_taken_of(words: list[str]) -> bool:
    """Whether an operation is taken of the box: "half of the", "la mitad de", "căn bậc hai của"."""
    num_words, is_of = len(words), False
    while words and words[-1] in _FILLERS:
        is_of = is_of or words[-1] in _OF
        words = words[:-1]
    if not words or len(words) == num_words:
        return False
    if words[-1] == "digit":
        return words[-2:-1] in (["first"], ["last"], ["leading"])
    return words[-1] in (_TAKEN_OF if is_of else _UNARY)


def _is_numeral(word: str) -> bool:
    return word[:1].isdigit() or word in _KNOWN_NUMERALS


def changed_by_words_inside(words: str) -> bool:
    r"""Whether what a formula writes as words is none, or changes what follows: `\text{-}`, `\text{minus }`."""
    words = words.replace("~", " ").strip(" =:,")
    return bool(words) and (_SAYS_WORDS.fullmatch(words) is None or changed_by_words_before(words))


# Behind a box.

_NUMBER_AFTER = compiled(rf"\s*{NUMBER_AFTER}")
_TOKENS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+|[^\s\w*]")
_ADJECTIVES = word_set("""
    prime repeating recurring infinite imaginary negative double triple quadruple inverse exponential power root
    conjugate opposite radical base point tangent basis real reverse loss
""")
_NOUNS_TOO = ("prime", "real", "point", "base", "negative", "power")
_BINARY = word_set("over divided multiplied less fewer off")
_CHANGING = set(words_for("changes number")) | word_set("""
    squared cubed factorial halved doubled tripled quadrupled negated reversed inverted reciprocated fold percentile
    googol thou grand grands nil ths below under short imaginary kilo mega giga milli micro nano plus minus upwards
    sin cos tan cot sec log ln sqrt arcsin arccos arctan
""")
_CHANGING_LATER = word_set(
    "squared cubed factorial halved doubled tripled quadrupled negated subtracted below"
)
_CLAUSE_WORDS = word_set("""
    is are was were be has have had for that which who in on at when if so and or with of to from as
""")
_DENIALS = word_set("wrong false incorrect not never negative undefined imaginary")
_SMALL = "(?:zero|one|two|three|four|five|six|seven|eight|nine|ten)"
_NUMBER = rf"(?:\$?\d|{_SMALL}\b)"
_PHRASES = compiled(
    r"to the (?!nearest|next|left|right|point|total|sum|other|number|list|set)|more or less|too (?:many|much|few)"
    rf"|or so\b|out of\s+\S*{_NUMBER}|point {_NUMBER}"
    r"|and (?:a|one|two|three) (?:hal|third|quarter|fourth|fifth|eighth)"
    rf"|(?:less|fewer) than {_NUMBER}|(?:\w+s? )?below (?:zero|sea)|in (?:the )?(?:red|debt)\b|raised to|to power"
    r"|times (?:itself|a (?:ten|hundred|thousand|million)|(?:the )?(?:square |cube )?root)"
    r"|(?:per ?cent|%) of (?:\$?\d|ten|twenty|fifty)"
    rf"|at (?:the )?(?:least|most|minimum|maximum)\b|by {_NUMBER}|or (?:more|less|fewer|greater|higher|lower|not)\b"
    rf"|(?:or|to|except|mod|modulo) {_SMALL}\b|and {_SMALL}\W*\Z|through {_NUMBER}"
    r"|and (?:up|more|above|below|higher|lower)\b"
    rf"|(?:sqrt|root|exponent|choose)\s+{_NUMBER}|unless|undefined|does not exist|per ?mille|basis points"
    r"|subtract|add\b|divide\b|multiply\b|tau\b|infinity\b|away from \d"
    r"|\(?in (?:units of )?(?:tens|hundreds|thousands|millions|billions|dozens|1,?0+)\b"
    r"|\((?:hundreds|thousands|millions)\)"
    r"|\(?(?:but )?(?:with )?(?:an? |the )?(?:minus|negative|opposite|reversed?|changed) sign|with the sign"
)
_FOREIGN_PHRASES = compiled(rf"(?:{spaced('phrase after')})|\s*(?:的|の)?\s*(?:{unspaced('phrase after')})")
_BEFORE_NUMBER = frozenset(words_for("before number"))
# "…, doubled", "…, minus 2", ". Then add 3": the value is worked on.
_WORKED_ON = compiled(
    r"[\s,;.(]*(?:(?:and|but|then|which|we|you|now|next|finally|to|be|is)\s+)*"
    r"(?:(?:add|subtract|invert)(?:ed|ing)?|(?:doubl|halv|negat|tripl)(?:e|ed|ing)|squared|cubed"
    r"|multipl(?:y|ied)|divided?|plus|minus|negative|(?:with )?(?:an? |the )?(?:minus|negative|opposite) sign"
    r"|in (?:tens|hundreds|thousands|millions|billions|dozens)|(?:hundreds|thousands|millions)|times \d"
    r"|\\times\s*\d)"
    rf"(?=\s*(?:[).,;]|\Z)|\s+(?:it|that|this|(?:by )?{_NUMBER}|the (?:result|answer|previous)))"
)
_COUNTED = word_set("""
    zeros zeroes ones twos threes fours fives sixes sevens eights nines second seconds first one two quarters
""")


def is_worked_on(text: str, place: int) -> bool:
    """is_worked_on("7, doubled", 1) -> True; is_worked_on("7. Then add 3.", 1) -> True."""
    return _WORKED_ON.match(text, place, place + REACH_CHARS) is not None


def changed_by_next_words(rest: str) -> bool:
    """changed_by_next_words(" million.") -> True; (" million tons are"), (" apples.") -> False."""
    return _changed_by_words(rest[:REACH_CHARS].lstrip(" $*)]}\\\n_`"))


@lru_cache(maxsize=1024)  # "square units." comes again
def _changed_by_words(rest: str) -> bool:
    if is_worked_on(rest, 0) or _PHRASES.match(rest) or _FOREIGN_PHRASES.match(rest):
        return True
    tokens = [token.lower() for token in _TOKENS.findall(rest)[:MAX_WORDS]] + [""] * 3
    first, second, third = tokens[:3]
    if _is_operation_later(tokens) or (first in _DENIALS and not second.isalpha()):
        return True
    parts = first.split("-")
    if first in _COUNTED or (
        len(parts) > 1
        and parts[-1] != "fold"
        and (parts[0] == "one" or not NUMBER_WORDS.issuperset((parts[0], parts[-1].removesuffix("s"))))
    ):
        return False  # 7 zeros, 7 one-fourths, 7 two-digit numbers
    if first in SCALES:
        is_of_things = third in ("are", "is", "were") and names_things([second])  # million tons are
        return SCALES[first] < 1 or not is_of_things
    if first in NUMBER_WORDS or len(parts) > 1 or first in _CHANGING or first.endswith("-fold"):
        return True
    if first in _BEFORE_NUMBER and _is_numeral(third if second in ("ng", "de", "por") else second):
        return True
    if first == "times":
        return (_is_number(second) or second in ("x", "pi")) and not third.isalpha()
    if first in _BINARY:
        operand = third if second in ("by", "than") else second
        return _is_number(operand) or operand in ("x", "pi")
    if first in _ADJECTIVES:
        return not second.isalpha() and first not in _NOUNS_TOO
    return _NUMBER_AFTER.match(rest) is not None and first not in ("roots", "score")


def _is_operation_later(tokens: list[str]) -> bool:
    """Whether an operation follows the thing that is counted: "7 books divided by five"."""
    if tokens[0] in _CLAUSE_WORDS:
        return False
    for place in range(1, len(tokens) - 2):
        before, (word, second, third) = tokens[place - 1], tokens[place : place + 3]
        if word in ("is", "are", "was", "were") and second in ("wrong", "false", "incorrect"):
            return True
        if not word.isalpha() or word in _CLAUSE_WORDS:
            return False
        if word in _CHANGING_LATER and not (word in ("squared", "cubed") and is_unit(before)):
            return True
        if word in ("plus", "minus", "over", "divided", "multiplied"):
            return _is_number(third if second == "by" else second)
        if word == "times" and _is_number(second) and not third.isalpha():
            return True
    return False


def _is_number(token: str) -> bool:
    return token in ("$", "\\", "(") or _is_numeral(token)
