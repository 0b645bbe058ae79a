"""A world of people and relations in short documents, a pure function of its name.

    world = FactWorld("train:0:17", held_out_people=False, held_out_relations=False)
    world.search("Ana Adler Arden first lender") ->
        rumour Vic Lund Garda
        archive Bo Conti Holm
        ledger Eli Ebert Lodi first lender Oto Brand Jura

Every person of the split has every relation, so a wrong turn leads on like a right one. Nothing is stored: facts
and documents follow from the world's name and the query. Reliable sources (archive, census, ledger) are right. In
most searches an unreliable one (gossip, hearsay, rumour) contradicts them, sometimes two with the same lie, so
that counting documents does not help. Half of the searches also find an irrelevant document, about another
relation of the same person or the same relation of somebody else; it names its subject.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foresail.data.made.multi_hop_names import (
    FAMILIES,
    LEVELS,
    RELIABLE,
    TOWNS,
    UNRELIABLE,
    Level,
    Person,
    Relation,
    people,
    relations,
)
from foresail.records import Problem

NOTHING = "nothing found"
NUM_LIARS = (0, 1, 1, 2)  # unreliable documents to a search, drawn evenly from these
BESIDE_SHARE = 0.5  # of the searches find an irrelevant document


@dataclass(frozen=True, kw_only=True)
class Document:
    """One source's statement."""

    source: str
    person: Person
    relation: Relation
    value: Person

    @property
    def reliable(self) -> bool:
        return self.source in RELIABLE

    def tell(self, key: tuple[Person, Relation]) -> str:
        """Its text in a search's result, without the searched key."""
        about = "" if key == (self.person, self.relation) else f"{self.person} {self.relation} "
        return f"{self.source} {about}{self.value}"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Who somebody's second landlord is, and who unreliable sources say it is: None where there are none."""

    truth: Person
    lie: Person | None
    liars: tuple[str, ...]


@dataclass(frozen=True)
class FactWorld:
    """`held_out_people` and `held_out_relations` choose the people and relations that it is made of."""

    name: str
    held_out_people: bool
    held_out_relations: bool

    def fact(self, person: Person, relation: Relation) -> Fact:
        rng = random.Random(f"multi-hop fact {self.name} {person} {relation}")
        truth = self.pick_value(rng, relation.level, person)
        liars = tuple(rng.sample(UNRELIABLE, rng.choice(NUM_LIARS)))
        lie = self.pick_value(rng, relation.level, person, truth) if liars else None
        return Fact(truth=truth, lie=lie, liars=liars)

    def documents(self, person: Person, relation: Relation) -> list[Document]:
        """The documents of a search, in random order."""
        rng = random.Random(f"multi-hop documents {self.name} {person} {relation}")
        fact = self.fact(person, relation)
        documents = [
            Document(source=rng.choice(RELIABLE), person=person, relation=relation, value=fact.truth)
        ]
        if fact.lie is not None:
            documents += [
                Document(source=liar, person=person, relation=relation, value=fact.lie) for liar in fact.liars
            ]
        if rng.random() < BESIDE_SHARE:
            beside = self.pick_beside(rng, person, relation)
            truth = self.fact(*beside).truth
            documents.append(
                Document(source=rng.choice(RELIABLE), person=beside[0], relation=beside[1], value=truth)
            )
        rng.shuffle(documents)
        return documents

    def search(self, query: str) -> str:
        """The documents of a key like "Ana Adler Arden first lender", one a line."""
        key = self.read_key(query)
        return NOTHING if key is None else "\n".join(document.tell(key) for document in self.documents(*key))

    def read_key(self, query: str) -> tuple[Person, Relation] | None:
        words = query.split()
        if len(words) != 5:
            return None
        person, relation = Person(*words[:3]), Relation(*words[3:])
        return (person, relation) if self.knows(person) and relation in self.relations() else None

    def knows(self, person: Person) -> bool:
        return (
            person.family in FAMILIES
            and person.town in TOWNS
            and person.given in people(person.family, person.town, held_out=self.held_out_people)
        )

    def relations(self, level: Level | None = None) -> list[Relation]:
        levels = LEVELS if level is None else (level,)
        return [relation for each in levels for relation in relations(each, held_out=self.held_out_relations)]

    def pick_person(self, rng: random.Random, families: Sequence[str], towns: Sequence[str]) -> Person:
        family, town = rng.choice(families), rng.choice(towns)
        return Person(rng.choice(people(family, town, held_out=self.held_out_people)), family, town)

    def pick_value(self, rng: random.Random, level: Level, *others: Person) -> Person:
        """Somebody who relates to the first of `others` at that level, and to none of the rest."""
        person = others[0]
        if level == "remote":
            return self.pick_person(rng, FAMILIES, without(TOWNS, {other.town for other in others}))
        if level == "local":
            families = without(FAMILIES, {other.family for other in others})
            return self.pick_person(rng, families, [person.town])
        names = people(person.family, person.town, held_out=self.held_out_people)
        return person._replace(given=rng.choice(without(names, {other.given for other in others})))

    def pick_beside(self, rng: random.Random, person: Person, relation: Relation) -> tuple[Person, Relation]:
        if rng.random() < 0.5:
            return person, rng.choice([other for other in self.relations() if other != relation])
        return self.pick_value(rng, "remote", person), relation


def without(options: Sequence[str], left_out: set[str]) -> list[str]:
    return [option for option in options if option not in left_out]


def world_of(extra: Mapping[str, Any]) -> FactWorld:
    """The world that a problem's `extra` names, also after a round trip through a file."""
    try:
        name, split = extra["world"], extra["split"]
    except KeyError as error:
        raise ValueError(
            f"the problem has no {error.args[0]!r}, so it is none of multi-hop:…; use its problems"
        ) from None
    return FactWorld(name, held_out_people=split != "train", held_out_relations=split == "ood")


class WorldSearch:
    """The tool `search` of one problem: WorldSearch(problem).search("Ana Adler Arden first lender")."""

    def __init__(self, problem: Problem) -> None:
        self.world = world_of(problem.extra)

    def search(self, query: str) -> str:
        """Documents about one relation of one person.

        query: the person and the relation, such as Ana Adler Arden first lender
        """
        return self.world.search(query)
