"""Questions about a generated world, answered by a chain of searches; each problem has a world of its own.

    Ana Adler Arden's first lender's second landlord's old cousin?
        search "Ana Adler Arden first lender"      -> Bo Conti Holm
        search "Bo Conti Holm second landlord"     -> Max Lund Holm
        search "Max Lund Holm old cousin"          -> Pia Lund Holm, the answer

Facts differ from problem to problem, so none can be memorised: a model learns to search, to tell reliable sources
from others, and to go on. A chain leads from remote relations to kin, so the answer holds evidence about earlier
choices (its town about the last lender, its family about the last landlord), which a teacher with the answer can
use.

    split   people     relations   hops, unless told otherwise
    train   train      train       2-3
    test    held out   train       2-3
    ood     held out   held out    3-4
    long    held out   train       6-8

`detours` puts asides into the question, searches that have nothing to do with the answer. `extra["matters"]` says
for each of `extra["searches"]` whether it is one of the chain. With `depth=2` a detour is a chain of its own.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from foresail.data.made.multi_hop_names import FAMILIES, LEVELS, TOWNS, Person, Relation
from foresail.data.made.multi_hop_world import FactWorld, world_of
from foresail.records import Message, Problem

SOURCE = "multi-hop"
HOPS = {"train": (2, 3), "test": (2, 3), "ood": (3, 4), "long": (6, 8)}  # by split
MAX_HOPS, MAX_DETOURS, MAX_DEPTH, MAX_PROBLEMS = 10, 10, 4, 100_000

Key = tuple[Person, Relation]
Aside = tuple[Person, tuple[Relation, ...]]  # a small chain of its own


@dataclass(frozen=True, kw_only=True)
class Question:
    """A chain, and its asides by place: `detours[0]` before the first search, `detours[1]` after it, …"""

    start: Person
    relations: tuple[Relation, ...]
    detours: tuple[tuple[Aside, ...], ...]

    @property
    def text(self) -> str:
        """ "Ana Adler Arden's first lender's (also Oto Lund Jura's new tailor) second landlord?"."""
        words = [*map(aside_text, self.detours[0]), f"{self.start}'s"]
        for number, (relation, detours) in enumerate(zip(self.relations, self.detours[1:], strict=True), 1):
            words += [
                f"{relation}'s" if number < len(self.relations) else str(relation),
                *map(aside_text, detours),
            ]
        return " ".join(words) + "?"


def aside_text(aside: Aside) -> str:
    return "(also {})".format("'s ".join(map(str, (aside[0], *aside[1]))))


def make_problems(
    count: int,
    *,
    seed: int,
    split: str = "train",
    hops: tuple[int, int] | None = None,
    detours: int = 0,
    depth: int = 1,
) -> list[Problem]:
    """`count` different problems; equal seeds give equal ones. `depth`: searches of a detour."""
    if split not in HOPS:
        raise ValueError(f"multi-hop: unknown split {split!r}; use one of {', '.join(HOPS)}")
    smallest, largest = hops or HOPS[split]
    if not 1 <= smallest <= largest <= MAX_HOPS:
        raise ValueError(f"multi-hop: hops {smallest}-{largest} is not a range within 1-{MAX_HOPS}; try 2-3")
    if not 0 <= detours <= MAX_DETOURS:
        raise ValueError(f"multi-hop: detours {detours} is not between 0 and {MAX_DETOURS}; try 3")
    if not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"multi-hop: depth {depth} is not between 1 and {MAX_DEPTH}; try 2")
    if not 1 <= count <= MAX_PROBLEMS:
        raise ValueError(f"multi-hop: count {count} is not between 1 and {MAX_PROBLEMS}; try 2000")
    problems = []
    for index in range(count):
        extra = {"world": f"{split}:{seed}:{index}", "split": split}
        rng = random.Random(f"multi-hop question {extra['world']}")
        problems.append(make_problem(rng, extra, rng.randint(smallest, largest), detours, depth))
    return problems


def make_problem(rng: random.Random, extra: dict[str, str], hops: int, detours: int, depth: int) -> Problem:
    world = world_of(extra)
    while True:
        question = pick_question(rng, world, hops, detours, depth)
        values = follow(world, question.start, question.relations)
        if is_fair(world, question, values):
            return to_problem(extra, question, values)


def pick_question(rng: random.Random, world: FactWorld, hops: int, detours: int, depth: int) -> Question:
    chosen: list[Relation] = []
    one_more = rng.sample(LEVELS, hops % len(LEVELS))
    for level in LEVELS:
        chosen += rng.sample(world.relations(level), hops // len(LEVELS) + (level in one_more))
    # an aside never shares a relation with the chain, so that it is clear what comes after which
    others = [relation for relation in world.relations() if relation not in chosen]
    places: list[list[Aside]] = [[] for _ in range(hops + 1)]
    for relation in rng.sample(others, detours):
        relations = (relation, *(rng.choice(others) for _ in range(depth - 1)))
        rng.choice(places).append((world.pick_person(rng, FAMILIES, TOWNS), relations))
    return Question(
        start=world.pick_person(rng, FAMILIES, TOWNS),
        relations=tuple(chosen),
        detours=tuple(map(tuple, places)),
    )


def follow(world: FactWorld, person: Person, relations: Sequence[Relation]) -> list[Person]:
    """The truth about each step: [the first lender, that one's second landlord, …]."""
    people = []
    for relation in relations:
        person = world.fact(person, relation).truth
        people.append(person)
    return people


def is_fair(world: FactWorld, question: Question, values: Sequence[Person]) -> bool:
    """Whether every search of the chain is needed, every lie misleads, and no aside helps."""
    answer, chain = values[-1], (question.start, *values)
    keys = list(zip(chain, question.relations, strict=False))
    if len(set(chain)) < len(chain) or any(mentions(world, key, [answer]) for key in keys[:-1]):
        return False
    asides = [aside for asides in question.detours for aside in asides]
    if any(mentions(world, key, chain) for aside in asides for key in keys_of(world, aside)):
        return False
    for number, key in enumerate(keys, 1):
        lie = world.fact(*key).lie
        if lie is not None and (lie, *follow(world, lie, question.relations[number:]))[-1] == answer:
            return False
    return True


def keys_of(world: FactWorld, aside: Aside) -> list[Key]:
    """The aside's searches, with true intermediate answers."""
    person, relations = aside
    return list(zip((person, *follow(world, person, relations)), relations, strict=False))


def mentions(world: FactWorld, key: Key, persons: Sequence[Person]) -> bool:
    return any(
        person in (document.person, document.value)
        for document in world.documents(*key)
        for person in persons
    )


def to_problem(extra: dict[str, str], question: Question, values: Sequence[Person]) -> Problem:
    """`extra` is plain JSON: the searches of chain and asides in the order of the text, and their results."""
    world = world_of(extra)
    chain = [(key, True) for key in zip((question.start, *values), question.relations, strict=False)]
    asides = [
        [(key, False) for aside in asides for key in keys_of(world, aside)] for asides in question.detours
    ]
    steps = [*asides[0]]
    for step, between in zip(chain, asides[1:], strict=True):
        steps += [step, *between]
    return Problem(
        id=f"{SOURCE}:{extra['world']}:{zlib.crc32(question.text.encode()):08x}",
        prompt=(Message(role="user", content=question.text),),
        answer=str(values[-1]),
        source=SOURCE,
        extra={
            **extra,
            "hops": len(values),
            "searches": [f"{person} {relation}" for (person, relation), _ in steps],
            "values": [str(world.fact(*key).truth) for key, _ in steps],
            "matters": [matters for _, matters in steps],
        },
    )


def advances(problem: Problem, queries: Sequence[str]) -> list[bool]:
    """Which searches of an episode advance it: those of the chain, each the first time.

    A detour, a repetition or a search that follows a lie does not, whatever the outcome.
    """
    both = zip(problem.extra["searches"], problem.extra["matters"], strict=True)
    open_keys = {key for key, matters in both if matters}
    advancing = []
    for query in (" ".join(query.split()) for query in queries):
        advancing.append(query in open_keys)
        open_keys.discard(query)
    return advancing
