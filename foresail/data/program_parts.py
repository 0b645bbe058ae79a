"""The pieces of `programs`: what is kept, changed, taken and made of a list, in words and in Python.

A piece reads the item as `x` and the list so far as `values`. What the words say of an empty list, the code does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """`words` continue a sentence, `code` a program."""

    words: str
    code: str


@dataclass(frozen=True, kw_only=True)
class World:
    """What functions of one kind work on; `source` is the list that the argument gives."""

    name: str
    argument: str
    opening: str
    source: str
    keeps: tuple[Piece, ...]
    changes: tuple[Piece, ...]
    takes: tuple[Piece, ...]
    folds: tuple[Piece, ...]


TAKES = (
    Piece("takes only the first three of these", "values[:3]"),
    Piece("takes only the last two of these", "values[-2:]"),
    Piece("drops the first of these", "values[1:]"),
    Piece("drops repeats", "list(dict.fromkeys(values))"),
    Piece("puts these in reverse order", "values[::-1]"),
    Piece("sorts these", "sorted(values)"),
)

NUMBERS = World(
    name="numbers",
    argument="numbers",
    opening="takes a list of integers",
    source="numbers",
    keeps=(
        Piece("keeps the even ones", "x % 2 == 0"),
        Piece("keeps the odd ones", "x % 2 == 1"),
        Piece("keeps the positive ones", "x > 0"),
        Piece("keeps the negative ones", "x < 0"),
        Piece("keeps those above 5", "x > 5"),
        Piece("keeps those below 10", "x < 10"),
        Piece("keeps those that 3 divides", "x % 3 == 0"),
        Piece("leaves out zeros", "x != 0"),
        Piece("keeps those of one digit", "-10 < x < 10"),
    ),
    changes=(
        Piece("doubles each", "x * 2"),
        Piece("squares each", "x * x"),
        Piece("adds 1 to each", "x + 1"),
        Piece("subtracts 3 from each", "x - 3"),
        Piece("changes the sign of each", "-x"),
        Piece("takes the absolute value of each", "abs(x)"),
        Piece("takes the last digit of each absolute value", "abs(x) % 10"),
        Piece("limits each to at most 8", "min(x, 8)"),
        Piece("multiplies each by 10", "x * 10"),
    ),
    takes=TAKES,
    folds=(
        Piece("returns their sum", "sum(values)"),
        Piece("returns how many there are", "len(values)"),
        Piece("returns the largest, or 0 if there is none", "max(values, default=0)"),
        Piece("returns the smallest, or 0 if there is none", "min(values, default=0)"),
        Piece("returns them as a list", "values"),
        Piece("returns how many different ones there are", "len(set(values))"),
        Piece("returns the last, or 0 if there is none", "values[-1] if values else 0"),
        Piece("returns the first, or 0 if there is none", "values[0] if values else 0"),
        Piece("returns whether there are more than two", "len(values) > 2"),
    ),
)

WORDS = World(
    name="words",
    argument="text",
    opening="takes a text and splits it into words",
    source="text.split()",
    keeps=(
        Piece("keeps the words with more than three letters", "len(x) > 3"),
        Piece("keeps the words with at most four letters", "len(x) <= 4"),
        Piece("keeps the words that begin with a vowel", "x[0] in 'aeiou'"),
        Piece("keeps the words that contain the letter e", "'e' in x"),
        Piece("keeps the words that end with s", "x.endswith('s')"),
        Piece("leaves out the word the", "x != 'the'"),
        Piece("keeps the words with an even number of letters", "len(x) % 2 == 0"),
    ),
    changes=(
        Piece("writes each in capitals", "x.upper()"),
        Piece("turns each around", "x[::-1]"),
        Piece("takes the first letter of each", "x[0]"),
        Piece("takes the last letter of each", "x[-1]"),
        Piece("doubles each", "x + x"),
        Piece("replaces every a by o in each", "x.replace('a', 'o')"),
        Piece("cuts each to three letters", "x[:3]"),
    ),
    takes=TAKES,
    folds=(
        Piece("returns how many there are", "len(values)"),
        Piece("returns them joined by dashes", "'-'.join(values)"),
        Piece("returns them joined without spaces", "''.join(values)"),
        Piece("returns them as a list", "values"),
        Piece("returns the number of letters in all of them", "len(''.join(values))"),
        Piece("returns the last, or '' if there is none", "values[-1] if values else ''"),
        Piece("returns the first of the longest, or '' if there is none", "max(values, key=len, default='')"),
        Piece("returns how many different ones there are", "len(set(values))"),
    ),
)
VOCABULARY = tuple(
    "the a cat dogs sees under apples tree old ants river of runs orange blue is eggs table sun birds into every "
    "us lamp green on elephants and sings tea letters it grass umbrellas far moves no ice stones we open".split()
)
