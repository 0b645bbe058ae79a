"""The operations of `programs` (filter, map, slice, fold), in words and in Python.

A piece reads the item as `x` and the list so far as `values`. Words and code agree on empty lists too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """`words` continue a sentence, `code` a program."""

    words: str
    code: str


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A kind of argument; `source` is the code of the list that is made of it."""

    name: str
    argument: str
    opening: str
    source: str
    keeps: tuple[Operation, ...]
    changes: tuple[Operation, ...]
    takes: tuple[Operation, ...]
    folds: tuple[Operation, ...]


TAKES = (
    Operation("takes only the first three of these", "values[:3]"),
    Operation("takes only the last two of these", "values[-2:]"),
    Operation("drops the first of these", "values[1:]"),
    Operation("drops repeats", "list(dict.fromkeys(values))"),
    Operation("puts these in reverse order", "values[::-1]"),
    Operation("sorts these", "sorted(values)"),
)

NUMBERS = Domain(
    name="numbers",
    argument="numbers",
    opening="takes a list of integers",
    source="numbers",
    keeps=(
        Operation("keeps the even ones", "x % 2 == 0"),
        Operation("keeps the odd ones", "x % 2 == 1"),
        Operation("keeps the positive ones", "x > 0"),
        Operation("keeps the negative ones", "x < 0"),
        Operation("keeps those above 5", "x > 5"),
        Operation("keeps those below 10", "x < 10"),
        Operation("keeps those that 3 divides", "x % 3 == 0"),
        Operation("leaves out zeros", "x != 0"),
        Operation("keeps those of one digit", "-10 < x < 10"),
    ),
    changes=(
        Operation("doubles each", "x * 2"),
        Operation("squares each", "x * x"),
        Operation("adds 1 to each", "x + 1"),
        Operation("subtracts 3 from each", "x - 3"),
        Operation("changes the sign of each", "-x"),
        Operation("takes the absolute value of each", "abs(x)"),
        Operation("takes the last digit of each absolute value", "abs(x) % 10"),
        Operation("limits each to at most 8", "min(x, 8)"),
        Operation("multiplies each by 10", "x * 10"),
    ),
    takes=TAKES,
    folds=(
        Operation("returns their sum", "sum(values)"),
        Operation("returns how many there are", "len(values)"),
        Operation("returns the largest, or 0 if there is none", "max(values, default=0)"),
        Operation("returns the smallest, or 0 if there is none", "min(values, default=0)"),
        Operation("returns them as a list", "values"),
        Operation("returns how many different ones there are", "len(set(values))"),
        Operation("returns the last, or 0 if there is none", "values[-1] if values else 0"),
        Operation("returns the first, or 0 if there is none", "values[0] if values else 0"),
        Operation("returns whether there are more than two", "len(values) > 2"),
    ),
)

WORDS = Domain(
    name="words",
    argument="text",
    opening="takes a text and splits it into words",
    source="text.split()",
    keeps=(
        Operation("keeps the words with more than three letters", "len(x) > 3"),
        Operation("keeps the words with at most four letters", "len(x) <= 4"),
        Operation("keeps the words that begin with a vowel", "x[0] in 'aeiou'"),
        Operation("keeps the words that contain the letter e", "'e' in x"),
        Operation("keeps the words that end with s", "x.endswith('s')"),
        Operation("leaves out the word the", "x != 'the'"),
        Operation("keeps the words with an even number of letters", "len(x) % 2 == 0"),
    ),
    changes=(
        Operation("writes each in capitals", "x.upper()"),
        Operation("turns each around", "x[::-1]"),
        Operation("takes the first letter of each", "x[0]"),
        Operation("takes the last letter of each", "x[-1]"),
        Operation("doubles each", "x + x"),
        Operation("replaces every a by o in each", "x.replace('a', 'o')"),
        Operation("cuts each to three letters", "x[:3]"),
    ),
    takes=TAKES,
    folds=(
        Operation("returns how many there are", "len(values)"),
        Operation("returns them joined by dashes", "'-'.join(values)"),
        Operation("returns them joined without spaces", "''.join(values)"),
        Operation("returns them as a list", "values"),
        Operation("returns the number of letters in all of them", "len(''.join(values))"),
        Operation("returns the last, or '' if there is none", "values[-1] if values else ''"),
        Operation(
            "returns the first of the longest, or '' if there is none", "max(values, key=len, default='')"
        ),
        Operation("returns how many different ones there are", "len(set(values))"),
    ),
)
VOCABULARY = tuple(
    "the a cat dogs sees under apples tree old ants river of runs orange blue is eggs table sun birds into every "
    "us lamp green on elephants and sings tea letters it grass umbrellas far moves no ice stones we open".split()
)
