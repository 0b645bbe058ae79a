"""The words of the multi-hop world: who lives in it, how they are related, who tells of it.

A person is a given name, a family and a town: "Ana Adler Arden". A relation is two words: "second landlord". What
is held out, whatever the seeds: in every family of a town a quarter of the people, and a third of the relations.
Each single word of these is seen in training, so a model knows the words of a person or a relation it never met.
"""

from __future__ import annotations

import zlib
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

Level = Literal["remote", "local", "kin"]

GIVEN = (
    "Ana Bo Cai Dov Eli Fay Gus Hal Ida Jun Kit Lea Max Nia Oto Pia Quin Ron Sol Tam Uma Vic Wes Zoe".split()
)
FAMILIES = "Adler Brand Conti Duarte Ebert Fischer Greco Hansen Ivanov Jensen Keller Lund".split()
TOWNS = "Arden Bergen Calder Delma Elster Fenwick Garda Holm Ilmen Jura Kelso Lodi".split()
TEST_GIVEN = 6  # of the 24 people of one family in one town are kept for testing

MODIFIERS = ("first", "second", "third", "former", "old", "new")
# What a relation keeps: one lends money from another town, one's landlord lives in one's town, one's cousin has
# one's family name too.
NOUNS: dict[str, Level] = {
    "lender": "remote",
    "patron": "remote",
    "rival": "remote",
    "landlord": "local",
    "doctor": "local",
    "tailor": "local",
    "cousin": "kin",
    "uncle": "kin",
    "nephew": "kin",
}
LEVELS: tuple[Level, ...] = ("remote", "local", "kin")

RELIABLE = ("archive", "census", "ledger")
UNRELIABLE = ("gossip", "hearsay", "rumour")


class Person(NamedTuple):
    given: str
    family: str
    town: str

    def __str__(self) -> str:
        return " ".join(self)


class Relation(NamedTuple):
    modifier: str
    noun: str

    def __str__(self) -> str:
        return " ".join(self)

    @property
    def level(self) -> Level:
        return NOUNS[self.noun]


@cache
def people(family: str, town: str, *, held_out: bool) -> tuple[str, ...]:
    """The given names of a family in a town, of those kept for testing or of the others."""
    # crc32 is the same on every machine, unlike hash().
    ordered = sorted(GIVEN, key=lambda given: zlib.crc32(f"{given} {family} {town}".encode()))
    return tuple(ordered[:TEST_GIVEN] if held_out else ordered[TEST_GIVEN:])


@cache
def relations(level: Level, *, held_out: bool) -> tuple[Relation, ...]:
    """Every noun keeps two of its six modifiers for testing, other ones than its neighbours keep."""
    pairs = product(enumerate(NOUNS), enumerate(MODIFIERS))
    return tuple(
        Relation(modifier, noun)
        for (i, noun), (j, modifier) in pairs
        if NOUNS[noun] == level and ((i + j) % 3 == 0) == held_out
    )
