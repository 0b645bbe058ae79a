"""Questions over passages, with answers that can be checked.

    passage-qa:file=qa.jsonl,corpus=corpus.jsonl,count=900,seed=1

The ways take turns. Each goes through its questions in an order of its own; when all were asked, they are asked
again among other passages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from foresail.data.made.passages.library import Library, NearPassages, Question
from foresail.data.made.passages.replacements import Answers, asked_for
from foresail.data.made.passages.ways import WAYS, Asked, Draw
from foresail.data.made.passages.wording import solution, word_prompt
from foresail.records import Message, Problem

SOURCE = "passage-qa"
ROUNDS = 20  # times that a question is asked in one way; then passages repeat too much
ONE_IN = 10  # questions is for split=test


def make_problems(
    library: Library,
    count: int,
    *,
    seed: int,
    ways: Sequence[str],
    passages: tuple[int, int],
    split: str,
    files: tuple[str, str | None],
) -> list[Problem]:
    questions = [one for one in library.questions if split_of(one.id) == split]
    near = NearPassages(library.passages)
    answers = answers_by_kind(library.questions)
    makers = [
        asked_in(way, questions, near, answers, seed=seed, passages=passages, files=files) for way in ways
    ]
    problems: list[Problem] = []
    prompts: set[str] = set()
    while makers and len(problems) < count:
        maker = makers.pop(0)
        if (problem := next(maker, None)) is not None:
            makers.append(maker)
            if (prompt := problem.prompt[0].content) not in prompts:
                prompts.add(prompt)
                problems.append(problem)
    if len(problems) < count:
        raise ValueError(
            f"{SOURCE}: {files[0]} gives {len(problems)} problems of split={split} in these ways; write count="
            f"{len(problems)}, or name more questions"
        )
    return problems


def answers_by_kind(questions: Sequence[Question]) -> Answers:
    """By what the question asks for."""
    kinds: dict[str, set[str]] = {}
    for question in questions:
        kinds.setdefault(asked_for(question.text) or "", set()).add(question.answer)
    return {kind: sorted(answers) for kind, answers in kinds.items() if kind}


def split_of(id: str) -> str:
    return "test" if blake2b(id.encode(), digest_size=4).digest()[0] % ONE_IN == 0 else "train"


def asked_in(
    way: str,
    questions: Sequence[Question],
    near: NearPassages,
    answers: Answers,
    *,
    seed: int,
    passages: tuple[int, int],
    files: tuple[str, str | None],
) -> Iterator[Problem]:
    for number in range(ROUNDS):
        order = random.Random(f"{seed} {way} {number}").sample(range(len(questions)), len(questions))
        for question in (questions[place] for place in order):
            chance = random.Random(f"{seed} {way} {number} {question.id}")
            total = chance.randint(*passages)
            others = near.nearest(question.text)
            draw = Draw(chance=chance, others=others, total=total, answers=answers)
            if (asked := WAYS[way](question, draw)) is not None:
                yield to_problem(way, number, question, asked, chance, seed, files)


def to_problem(
    way: str,
    number: int,
    question: Question,
    asked: Asked,
    chance: random.Random,
    seed: int,
    files: tuple[str, str | None],
) -> Problem:
    prompt, template = word_prompt(question.text, asked, chance)
    file, corpus = files
    origins = [{"source": file, "id": question.id}]
    made = {"by": SOURCE, "way": way, "template": template, "seed": seed, "round": number}
    if corpus is not None:
        made |= {"corpus": corpus}
    made |= {"titles": [passage.title for passage in asked.passages], "evidence": [*asked.evidence]}
    return Problem(
        id=f"{SOURCE}:{seed}:{way}:{number}:{question.id}",
        prompt=(Message(role="user", content=prompt),),
        answer=asked.answer,
        source=SOURCE,
        extra={
            "solution": solution(asked),
            "question": question.text,
            "way": way,
            "made": made | {"from": origins},
        },
    )
