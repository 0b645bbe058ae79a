"""Names of a text, and whether each still stands beside its own numbers.

names("Natalia sold clips to 48 friends in April.") -> {"Natalia", "April"}
swapped("Tom has 5 and Ann has 3.", …, "Tom has 3 and Ann has 5.", …) -> "Tom: 5 became 3"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foresail.curate.rewriting.quantities import Quantity

CAPITAL = re.compile(r"(?<![^\W\d_])[A-Z\u00c0-\u00de\u0110][^\W\d_]+(?:['\u2019-][A-Z][^\W\d_]+)*")
SENTENCE = re.compile(r"(?:\A|[.!?:;\n\"“”‘(]\s*)\Z")
BREAK = re.compile(r"[.!?\n]")
NOUN = re.compile(r"[\s-]+(?:(?:more|of|the|new|old|small|large|big|whole|full)\s+)?([A-Za-z]{3,})")
WORD = re.compile(r"[A-Za-z]{3,}")
WINDOW = 4
# what may begin a sentence and is no name
COMMON = frozenset(
    "a about above according after all also although among an and another answer any are as assume at avoid "
    "based be because before below both but by calculate can choose compute consider create describe "
    "determine did do does during each either english evaluate even every explain express figure find first "
    "for from generate give given had has have he her here his how however i identify if imagine in instead "
    "into is it its just last later let list look make many maybe most my name need next no not now of on "
    "once one only or other our out over part people please prove provide question read rewrite say second "
    "select several she should show simplify since so solve some someone sometimes state still suggest "
    "summarize suppose take tell than that the their then there these they thing this those three through to "
    "today together translate two under until use using was we were what when where whether which while who "
    "whose why will with without work would write yes yesterday you your".split()
)


def names(text: str, *, initial: bool = True) -> set[str]:
    """`initial`: words that begin a sentence count, if they are not common ones."""
    capitalised = set()
    for match in CAPITAL.finditer(text):
        begins = SENTENCE.search(text[max(0, match.start() - 3) : match.start()]) is not None
        word = match[0].removesuffix("'s").removesuffix("\u2019s")
        if word.lower() not in COMMON and not (begins and not initial):
            capitalised.add(word)
    return capitalised


def lost_names(before: str, after: str, *, initial: bool = True) -> list[str]:
    said = after.casefold()
    return sorted(name for name in names(before, initial=initial) if stem(name.casefold()) not in said)


def stem(word: str) -> str:
    """stem("Cookies") -> "cooki": also what "cookie" begins with."""
    if len(word) <= 4:
        return word
    return word.removesuffix("es") if word.endswith("ies") else word.removesuffix("s")


# Numbers beside names and things.


def swapped(before: str, old: Sequence[Quantity], after: str, new: Sequence[Quantity]) -> str:
    """A name or a thing that has lost its own number and got another's, or ""."""
    if len(old) < 2:
        return ""
    known = frozenset().union(*(quantity.values for quantity in old))
    for name in sorted(names(before)):
        was, now = beside_name(before, name, old), beside_name(after, name, new)
        if was and now and was.isdisjoint(now) and now <= known:
            return f"{name}: {shown(was)} became {shown(now)}"
    if said := contexts_swapped(before, old, after, new):
        return said
    for thing in sorted({noun for _, noun in things(before, old)}):
        was = {value for quantity, noun in things(before, old) if noun == thing for value in quantity.values}
        now = {value for quantity, noun in things(after, new) if noun == thing for value in quantity.values}
        if was and now and was.isdisjoint(now) and now <= known:
            return f"{thing}: {shown(was)} became {shown(now)}"
    return ""


def beside_name(text: str, name: str, quantities: Sequence[Quantity]) -> set[object]:
    """The numbers next to a name in its sentence, on both sides."""
    values: set[object] = set()
    for match in re.finditer(re.escape(name), text, re.IGNORECASE):
        earlier = [one for one in quantities if one.end <= match.start()]
        later = [one for one in quantities if one.start >= match.end()]
        for one in (*earlier[-1:], *later[:1]):
            between = text[min(one.end, match.end()) : max(one.start, match.start())]
            if not BREAK.search(between):
                values |= one.values
    return values


def contexts_swapped(before: str, old: Sequence[Quantity], after: str, new: Sequence[Quantity]) -> str:
    """Two numbers of which each has the words around it that were the other's."""
    singles = [one for one in old if len(matches(one, old)) == len(matches(one, new)) == 1]
    was = [around(before, one) for one in singles]
    now = [around(after, matches(one, new)[0]) for one in singles]
    for i, one in enumerate(singles):
        for j in range(i):
            straight = len(was[i] & now[i]) + len(was[j] & now[j])
            crossed = len(was[i] & now[j]) + len(was[j] & now[i])
            common = len(was[i] & was[j])  # words that both have say nothing
            if crossed - straight >= 1 and straight - 2 * common <= 0:
                return f"{singles[j].text} and {one.text}"
    return ""


def matches(quantity: Quantity, others: Sequence[Quantity]) -> list[Quantity]:
    return [one for one in others if one.same(quantity)]


def around(text: str, quantity: Quantity) -> set[str]:
    """The nearest words on both sides, in the sentence."""
    left = BREAK.split(text[max(0, quantity.start - 80) : quantity.start])[-1]
    right = BREAK.split(text[quantity.end : quantity.end + 80])[0]
    words = [*WORD.findall(left)[-WINDOW:], *WORD.findall(right)[:WINDOW]]
    return {stem(word.lower()) for word in words} - COMMON


def things(text: str, quantities: Sequence[Quantity]) -> Iterator[tuple[Quantity, str]]:
    """Numbers with the noun right behind them."""
    for quantity in quantities:
        if (match := NOUN.match(text, quantity.end)) and match[1].lower() not in COMMON:
            yield quantity, stem(match[1].lower())


def shown(values: set[object]) -> str:
    return " and ".join(sorted(map(str, values)))
