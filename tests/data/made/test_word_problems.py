"""Word problems made here: right answers, and nothing of the test split ever seen in training."""

import json
import re
from pathlib import Path

import pytest

from foresail.data.chats.conversations import load_conversations
from foresail.data.made.story_templates import PEOPLE, TEMPLATES, THINGS
from foresail.data.made.word_problems import make_problems
from foresail.data.problems.problems import load_problems
from foresail.maths.verdict import grade
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem

EXAMPLES = Path(__file__).parents[3] / "recipes/flagship/word-problem-examples.jsonl"


def numbers_in(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def sentence(text: str) -> str:
    """The text without what any template may say: "Ken has 3 plums." -> "_ has _ _."."""
    return re.sub(rf"\d+|\b(?:{'|'.join((*PEOPLE, *THINGS))})\b", "_", text)


def fact(text: str, answer: int, operation: str) -> tuple[str, ...]:
    """The three numbers of a sum or a product, in whatever role: 12 + 9 and 21 - 9 are one fact."""
    kind = "sum" if operation in "+-" else "product"
    return (kind, *map(str, sorted([*numbers_in(text), answer])))


def fact_of(problem: Problem) -> tuple[str, ...]:
    return fact(problem.prompt[0].content, int(problem.answer), problem.extra["operation"])


@pytest.mark.parametrize("split", ["train", "test"])
def test_answers_are_what_python_makes_of_the_two_numbers(split: str) -> None:
    for problem in make_problems(2000, seed=1, split=split):
        assert "{" not in problem.prompt[0].content
        first, second = numbers_in(problem.prompt[0].content)
        operation = problem.extra["operation"]
        possible = {eval(f"{first} {operation} {second}"), eval(f"{second} {operation} {first}")}
        assert int(problem.answer) in possible
        assert grade(problem.extra["solution"], problem.answer, accept="stated").status == "correct"


def test_problems_are_distinct_and_stable() -> None:
    problems = make_problems(3000, seed=3)
    assert problems == make_problems(3000, seed=3) != make_problems(3000, seed=4)
    assert make_problems(100, seed=3) == problems[:100]
    assert len({problem.id for problem in problems}) == len({p.prompt for p in problems}) == 3000
    # Written down once: a change of the generator would silently change every run's data.
    assert (
        problems[0].prompt[0].content
        == "Aisha reads 6 pages every day. How many pages does Aisha read in 8 days?"
    )


def test_sentences_and_facts_of_the_splits_never_meet() -> None:
    train = [problem for seed in range(2) for problem in make_problems(4000, seed=seed)]
    test = [problem for seed in range(2) for problem in make_problems(2000, seed=seed, split="test")]
    sentences = [{sentence(p.prompt[0].content) for p in problems} for problems in (train, test)]
    facts = [{fact_of(problem) for problem in problems} for problems in (train, test)]
    assert not sentences[0] & sentences[1] and not facts[0] & facts[1]
    # All templates are in use, and both splits have both kinds of facts in plenty.
    for found, split in zip(sentences, ("train", "test"), strict=True):
        assert len(found) == sum(len(templates[split]) for templates in TEMPLATES.values())
    for found in facts:
        assert {kind for kind, *_ in found} == {"sum", "product"} and len(found) > 150


def test_answers_cannot_be_guessed() -> None:
    answers = [problem.answer for problem in make_problems(5000, seed=0)]
    assert max(answers.count(answer) for answer in set(answers)) < 0.06 * len(answers)


def test_the_worked_examples_are_of_the_training_split() -> None:
    """They stand before the held-out problems, too."""
    test = make_problems(5000, seed=0, split="test")
    facts = {fact_of(problem) for problem in test}
    sentences = {sentence(problem.prompt[0].content) for problem in test}
    rows = [json.loads(line) for line in EXAMPLES.read_text().splitlines()]
    assert [row["completion"].split()[1] for row in rows] == ["-", "*", "+", "/"]
    for row in rows:
        first, operation, second, _, answer = row["completion"].partition(".")[0].split()
        assert eval(first + operation + second) == int(answer)
        assert sorted(numbers_in(row["prompt"])) == sorted([int(first), int(second)])
        assert fact(row["prompt"], int(answer), operation) not in facts
        assert sentence(row["prompt"]) not in sentences


def test_the_source_and_its_mistakes() -> None:
    source = "word-problems:count=20,seed=2,split=test"
    assert load_problems(Problems(source=source)) == make_problems(20, seed=2, split="test")
    assert (
        load_conversations(source)[0][-1].content
        == make_problems(1, seed=2, split="test")[0].extra["solution"]
    )
    for wrong, message in {
        "word-problems:seed=1": "needs a count: word-problems:count=2000",
        "word-problems:count=5,split=dev": "unknown split 'dev'; use one of train, test",
        "word-problems:count=0": "count 0 is not between 1 and",
        "word-problems:count=5,steps=2": "unknown word-problems option 'steps'",
    }.items():
        with pytest.raises(ValueError, match=message):
            load_problems(Problems(source=wrong))
    with pytest.raises(ValueError, match="arithmetic makes problems without solutions"):
        load_conversations("arithmetic:count=3")
