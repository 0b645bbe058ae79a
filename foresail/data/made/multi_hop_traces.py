"""Episodes in the multi-hop world to imitate: the right searches, or a beginner's.

    user       Ana Adler Arden's first lender's old cousin?
    assistant  <search>Ana Adler Arden first lender</search>
    tool       archive Bo Conti Holm …
    assistant  <search>Bo Conti Holm old cousin</search>
    tool       …
    assistant  <answer>Pia Conti Holm</answer>

Search results are messages of the role `tool`, so the chat template writes them and they carry no loss.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from foresail.data.made.multi_hop_names import Person, Relation
from foresail.data.made.multi_hop_world import FactWorld, world_of
from foresail.records import Message, Problem

SEARCH, ANSWER = "<search>{}</search>", "<answer>{}</answer>"


def trace(problem: Problem) -> tuple[Message, ...]:
    """A noisy episode if the problem's source has `noise`, else the right searches."""
    noise = float(problem.extra.get("noise", 0.0))
    return noisy_conversation(problem, noise=noise) if noise else gold_conversation(problem)


def gold_conversation(problem: Problem) -> tuple[Message, ...]:
    """Every search that the question names, in order, and the answer."""
    return converse(problem, problem.extra["searches"], problem.answer)


def noisy_conversation(problem: Problem, *, noise: float, seed: int = 0) -> tuple[Message, ...]:
    """A beginner's episode: it has the form of a right one, and often another answer.

    With probability `noise` it believes the unreliable source where two contradict each other; with half of that a
    search is wasted or an aside left out; with a quarter it stops early. The last message has its answer.
    """
    if not 0 <= noise <= 1:
        raise ValueError(f"multi-hop: noise {noise} is not between 0 and 1; try 0.5")
    rng = random.Random(f"multi-hop trace {seed} {problem.id}")
    *queries, answer = beginner_searches(problem, noise, rng)
    return converse(problem, queries, answer)


def converse(problem: Problem, queries: list[str], answer: str) -> tuple[Message, ...]:
    world = world_of(problem.extra)
    turns = []
    for query in queries:
        turns.append(Message(role="assistant", content=SEARCH.format(query)))
        turns.append(Message(role="tool", content=world.search(query)))
    return (*problem.prompt, *turns, Message(role="assistant", content=ANSWER.format(answer)))


def beginner_searches(problem: Problem, noise: float, rng: random.Random) -> Iterator[str]:
    """The searches of a beginner, then its answer."""
    world = world_of(problem.extra)
    steps = list(zip(map(to_key, problem.extra["searches"]), problem.extra["matters"], strict=True))
    relations = [relation for (_, relation), _ in steps]
    person = next(person for (person, _), matters in steps if matters)
    done: list[str] = []
    for (subject, relation), matters in steps:
        if not matters:
            if rng.random() >= noise / 2:
                yield f"{subject} {relation}"
            continue
        if done and rng.random() < noise / 4:
            break
        if rng.random() < noise / 2:
            yield rng.choice([*done[-1:], f"{person} {rng.choice(relations)}"])
        done.append(f"{person} {relation}")
        yield done[-1]
        person = believe(world, person, relation, noise, rng)
    yield str(person)


def believe(world: FactWorld, person: Person, relation: Relation, noise: float, rng: random.Random) -> Person:
    fact = world.fact(person, relation)
    return fact.lie if fact.lie is not None and rng.random() < noise else fact.truth


def to_key(search: str) -> tuple[Person, Relation]:
    """to_key("Ana Adler Arden first lender") -> Ana Adler Arden, first lender."""
    words = search.split()
    return Person(*words[:3]), Relation(*words[3:])
