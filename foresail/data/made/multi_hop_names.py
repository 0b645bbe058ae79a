"""The vocabulary of the multi-hop world: people, relations and sources.

A person is a given name, a family and a town: "Ana Adler Arden". A relation is two words: "second landlord". Held
out, whatever the seeds: a quarter of the people in every family of a town, and a third of the relations. Their
single words all occur in training.
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
# What a relation preserves: a lender nothing, a landlord the town, a cousin town and family name.
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
    """The given names of a family in a town, held out or not."""
    # crc32 is the same on every machine, unlike hash().
    ordered = sorted(GIVEN, key=lambda given: zlib.crc32(f"{given} {family} {town}".encode()))
    return tuple(ordered[:TEST_GIVEN] if held_out else ordered[TEST_GIVEN:])


@cache
def relations(level: Level, *, held_out: bool) -> tuple[Relation, ...]:
    """Of every noun's six modifiers two are held out, other ones than those of its neighbours."""
    pairs = product(enumerate(NOUNS), enumerate(MODIFIERS))
    return tuple(
        Relation(modifier, noun)
        for (i, noun), (j, modifier) in pairs
        if NOUNS[noun] == level and ((i + j) % 3 == 0) == held_out
    )
