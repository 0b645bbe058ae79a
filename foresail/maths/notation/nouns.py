"""Which words may stand after a number without changing it: `7 apples`, `5 cm`, and never `7 squared`.

They are a unit of the table, or a phrase that ends on things one counts. Number words, operators, negations,
prepositions and words of doubt change what a number says, so a phrase with one of them is never dropped.
"""

from __future__ import annotations

import re

from foresail.maths.lexicon.table import spaced, unspaced, words_for
from foresail.maths.notation.number_words import NUMBER_WORDS
from foresail.maths.notation.units import is_unit
from foresail.maths.notation.vocabulary import word_set

# Words beside a value that take it back, bound it or leave it open: `7 at most`, `is not 7`.
DOUBTS = word_set("""
    least most unless not no nope none never wrong incorrect false guess possibly probably perhaps maybe might
    could actually either neither nor except instead rather versus vs but if than isn't don't excluded
    excluding else anything everything bound bounds lower upper estimate unequal otherwise unknown undefined
    doubtful invalid cannot
""")
# Words that make another number of the one beside them: `twice 7`, `7 squared`.
OPERATORS = word_set("""
    plus minus over divided multiplied squared cubed factorial negative negated negatives opposite reverse
    reversed inverse inverted inverses reciprocal reciprocals root sqrt radical conjugate log ln sin cos tan
    exp exponent exponential power mod modulo base choose once twice thrice double doubled triple tripled
    quadruple halved fold point percent percentage permille pct ppm basis pi tau infinity infinite imaginary
    prime recurring repeating bar kilo mega giga milli micro nano less fewer lesser owed overdrawn debt
    deficit loss losses its grand grands thou nil sine cosine tangent logarithm logarithms minuses pluses nth
    nths umpteen umpteens percents mille
""")
_FUNCTION_WORDS = word_set("""
    to through for when where with is are was were has have had does do equals be been at by on in into onto
    from above below under before after beyond past short off behind against without within out up down ago
    early late too many much very nearly almost about exactly or and so as that this which who it they them he
    she we you i itself themselves because since until while though although then thus hence
""")
_TRAILING = frozenset(
    "old long tall high wide deep apart left remaining each total altogether together".split()
)
_PLURALS = word_set("""
    people children men women feet teeth mice geese oxen sheep fish deer dice data vertices indices matrices
    money water rice milk sugar flour time work homework traffic pizza area volume length
""")
# What is often counted, for the singular after a 1.
_SINGULARS = word_set("""
    apple book dollar box ball student child man woman boy girl cat dog car point solution value integer pair
    triple game page week month mile cup piece slice egg cookie ticket pencil pen marble coin card chair table
    tree flower bird cow horse house room door triangle circle element set function subset arrangement
    combination permutation path edge vertex face side angle line segment divisor factor inch pound foot euro
    cent bottle bag orange banana candy toy shirt hat shoe cake pizza sandwich friend teacher worker player
    team day hour
""")
_COUNTERS = frozenset(words_for("counted"))  # where nouns have no plural that a rule would know
_OTHER_SCALES = frozenset(words_for("scale"))
_FOREIGN_SCALE = re.compile(f"{spaced('scale inside')}|{unspaced('scale inside')}")
_SINGULAR = re.compile(r"ss\Z|us\Z|is\Z|wards\Z")
_OPERATION = re.compile("subtract|divi[ds]|multipl|negat|revers|inver|recipro|doubl|tripl|halv")
_LARGE = re.compile(r"\w*(?:illions?|illiards?|illionths?|googol\w*|folds?)\Z", re.IGNORECASE)


def changes_value(word: str) -> bool:
    """Whether a word beside a number says something about it: changes_value("twice") -> True."""
    lower = word.lower()
    return (
        lower in DOUBTS
        or lower in OPERATORS
        or any(part in NUMBER_WORDS for part in lower.split("-"))
        or word in _OTHER_SCALES
        or _LARGE.fullmatch(word) is not None
        or _OPERATION.match(lower) is not None
        or (not word.isascii() and _FOREIGN_SCALE.search(word) is not None)
    )


def names_things(words: list[str]) -> bool:
    """Whether the words after a number only say what it counts: names_things(["red", "balls"]) -> True."""
    bare = [word.split("^")[0] for word in words if word != "/"]
    if is_unit(" ".join(words)) or words in (["am"], ["pm"]):
        return True
    if bare[0].lower() == "of" or "times" in bare[:-1]:
        return False
    if any(not is_unit(word) and (changes_value(word) or word.lower() in _FUNCTION_WORDS) for word in bare):
        return False
    while len(bare) > 1 and bare[-1].lower() in _TRAILING:
        bare.pop()
    return _is_counted(bare[-1]) or "per" in bare[1:-1]


def _is_counted(word: str) -> bool:
    lower = word.lower()
    if is_unit(word) or word in _COUNTERS or lower in _PLURALS | _COUNTERS | _SINGULARS:
        return True
    if not word.isascii():
        return len(word) > 1
    return len(word) > 3 and word.endswith("s") and _SINGULAR.search(word) is None
