r"""A static search for patterns that can read one text in many ways: where they fail, they try each of them.

    (?:-[-\s]*)+\Z      "-----x" is five dashes in 16 ways: each dash may begin a round or end the one before
    -[-\s]*\Z           in one way

A pattern becomes an automaton, with a place for each of its characters. Where two ways lead from a place back to it
by the same text, time doubles with every character. Texts made at random hardly ever meet such a loop.
What is atomic or possessive is never tried again, so it is looked at by itself. What looks ahead or behind is taken
to hold.

    python benchmarks/verifier/pattern_loops.py foresail.maths foresail.judge

The exit status is 1 where there is such a loop.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import string
import sys
from collections import Counter, deque
from collections.abc import Iterator
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

ROOMS = tuple(f"foresail.{room}" for room in "maths judge rewards agents tokenizer engine records".split())
CHARACTERS = string.printable + "éДд七のก한²٣½’、。\u3000\xa0–ß"  # besides those of the pattern
MANY = 150  # rounds of a loop that are as good as any number
CATEGORIES = {
    kinds.CATEGORY_DIGIT: r"\d", kinds.CATEGORY_NOT_DIGIT: r"\D", kinds.CATEGORY_SPACE: r"\s",
    kinds.CATEGORY_NOT_SPACE: r"\S", kinds.CATEGORY_WORD: r"\w", kinds.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip

Ways = Counter[int]  # places, and in how many ways one comes there


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", default=[*ROOMS])
    num_loops = 0
    for name, pattern in patterns_of(*parser.parse_args().packages):
        if signs := ambiguous_loop(pattern):
            num_loops += 1
            print(f"{name}: a loop reads {signs!r} in several ways")
    print(f"{num_loops} loops")
    sys.exit(1 if num_loops else 0)


def patterns_of(*packages: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every compiled pattern that a module of the packages holds, also in its tables, once, and its name."""
    met: set[int] = set()
    for package in packages:
        for module in modules_of(package):
            for name, value in vars(module).items():
                for pattern in patterns_in(value) if not name.startswith("__") else ():
                    if id(pattern) not in met:
                        met.add(id(pattern))
                        yield f"{module.__name__}.{name}", pattern


def modules_of(package: str) -> Iterator[Any]:
    module = importlib.import_module(package)
    yield module
    for inner in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
        if not inner.name.endswith("__main__"):
            yield importlib.import_module(inner.name)


def patterns_in(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(inner := getattr(value, "_pattern", None), re.Pattern):
        yield inner
    elif isinstance(value, dict | list | tuple) and depth < 3:
        for part in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(part, depth + 1)


def ambiguous_loop(pattern: re.Pattern[str]) -> str:
    r"""Some characters that a loop reads in several ways; empty without one: of (?:-[-\s]*)+ it is "-"."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    automaton = Automaton(tree.state.flags, "".join(dict.fromkeys(CHARACTERS + pattern.pattern)))
    apart = [tree]
    while apart:
        automaton.read(apart.pop())
        apart += automaton.apart
        automaton.apart = []
    return next(filter(None, map(automaton.signs_of_two_ways, automaton.loops)), "")


class Part(NamedTuple):
    """Whether it may read nothing, and its first and last places."""

    empty: bool
    first: Ways
    last: Ways


NOTHING = Part(True, Counter(), Counter())


class Automaton:
    """The places of a pattern, the characters that each of them reads, and what may follow it."""

    def __init__(self, flags: int, characters: str) -> None:
        self.flags, self.characters = flags & (re.IGNORECASE | re.DOTALL | re.ASCII), characters
        self.reads: list[frozenset[str]] = []
        self.follow: list[Ways] = []
        self.loops: list[range] = []  # places that lead to each other
        self.apart: list[Any] = []
        self.known: dict[str, frozenset[str]] = {}

    def read(self, items: Any) -> Part:
        """One part after the other."""
        whole = NOTHING
        for kind, argument in items:
            part = self.part(kind, argument)
            self.link(whole.last, part.first)
            whole = Part(
                whole.empty and part.empty,
                whole.first + part.first if whole.empty else whole.first,
                whole.last + part.last if part.empty else part.last,
            )
        return whole

    def part(self, kind: Any, argument: Any) -> Part:
        if (source := source_of(kind, argument)) is not None:
            if source not in self.known:
                matches = re.compile(source, self.flags).fullmatch
                self.known[source] = frozenset(filter(matches, self.characters))
            return self.place(self.known[source])
        if kind is kinds.BRANCH:
            branches = [self.read(branch) for branch in argument[1]]
            first, last = Counter[int](), Counter[int]()
            for branch in branches:
                first += branch.first
                last += branch.last
            return Part(any(branch.empty for branch in branches), first, last)
        if kind is kinds.SUBPATTERN:
            return self.read(argument[3])
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
            return self.repeat(*argument)
        if kind is kinds.GROUPREF:
            return self.place(frozenset(self.characters))._replace(empty=True)
        if kind is kinds.POSSESSIVE_REPEAT:
            self.apart.append(argument[2])
        elif kind is kinds.ATOMIC_GROUP:
            self.apart.append(argument)
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            self.apart.append(argument[1])
        return NOTHING

    def repeat(self, minimum: int, maximum: int, items: Any) -> Part:
        first_place = len(self.reads)
        part = self.read(items)
        if maximum > MANY:
            self.link(part.last, part.first)
            self.loops.append(range(first_place, len(self.reads)))
        return part._replace(empty=part.empty or minimum == 0)

    def place(self, reads: frozenset[str]) -> Part:
        self.reads.append(reads)
        self.follow.append(Counter())
        here = Counter([len(self.reads) - 1])
        return Part(False, here, here)

    def link(self, last: Ways, first: Ways) -> None:
        for place, ways in last.items():
            for after, more in first.items():
                self.follow[place][after] += ways * more

    def signs_of_two_ways(self, loop: range) -> str:
        """A pair of different places that begins and ends as one place, by the same text."""
        for place in loop:
            for after, ways in self.follow[place].items():
                if ways > 1 and after in loop:
                    return self.shown(self.reads[after])
        met = {pair for place in loop for pair in self.pairs(place, place, loop) if pair[0] < pair[1]}
        waiting = deque(met)
        while waiting:
            one, other = waiting.popleft()
            for pair in self.pairs(one, other, loop):
                if pair[0] == pair[1]:
                    return self.shown(self.reads[one] & self.reads[other])
                if pair not in met:
                    met.add(pair)
                    waiting.append(pair)
        return ""

    def pairs(self, one: int, other: int, loop: range) -> Iterator[tuple[int, int]]:
        """The places after both that read the same character."""
        for first in self.follow[one]:
            for second in self.follow[other]:
                if first in loop and second in loop and self.reads[first] & self.reads[second]:
                    yield first, second

    def shown(self, signs: frozenset[str]) -> str:
        return "".join(sorted(signs))[:12]


def source_of(kind: Any, argument: Any) -> str | None:
    """A pattern for one character, None of what is more than that."""
    if kind is kinds.ANY:
        return "."
    if kind is kinds.LITERAL or kind is kinds.NOT_LITERAL:
        return f"[{'^' * (kind is kinds.NOT_LITERAL)}{escaped(argument)}]"
    if kind is not kinds.IN:
        return None
    inside = ""
    for inner, value in argument:
        if inner is kinds.NEGATE:
            inside += "^"
        elif inner is kinds.RANGE:
            inside += f"{escaped(value[0])}-{escaped(value[1])}"
        else:
            inside += CATEGORIES[value] if inner is kinds.CATEGORY else escaped(value)
    return f"[{inside}]"


def escaped(code: int) -> str:
    return f"\\U{code:08x}"


if __name__ == "__main__":
    main()
