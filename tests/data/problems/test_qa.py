"""Question answering files as problems: accepted answers, evidence, corpora."""

from pathlib import Path
from typing import Any

import pytest

from foresail.data.problems.problems import load_problems
from foresail.data.problems.qa import (
    Passage,
    accepted_answers,
    context_passages,
    evidence_titles,
    read_corpus,
)
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, single_turn
from foresail.rewards.grader import find_ballot, find_grader

QA = Path(__file__).parents[4] / "shared/data/qa"


def find_file(name: str) -> Path:
    path = QA / name
    if not path.is_file():
        pytest.skip(f"{path} is not there: data for tests is not part of the project")
    return path


@pytest.mark.parametrize(
    ("row", "accepted"),
    [
        ('{"question": "?", "answer": "Paris"}', ("Paris",)),
        ('{"question": "?", "answer": "Paris", "aliases": ["Lutetia"]}', ("Paris", "Lutetia")),
        ('{"question": "?", "answer": ["Paris", "City of Paris"]}', ("Paris", "City of Paris")),
        ('{"question": "?", "golden_answers": ["Paris", "Lutetia"]}', ("Paris", "Lutetia")),
        ('{"question": "?", "answers": {"text": ["Paris", "in Paris"]}}', ("Paris", "in Paris")),
        ('{"question": "?", "answer": {"value": "Paris", "aliases": ["Lutetia"]}}', ("Paris", "Lutetia")),
        (
            '{"prompt": "?", "reward_model": {"ground_truth": {"target": ["Paris", "Lutetia"]}}}',
            ("Paris", "Lutetia"),
        ),
        ('{"question": "?", "answer": "Paris, Texas", "aliases": ["Paris"]}', ("Paris, Texas", "Paris")),
        ('{"question": "?", "answer": 1990}', ("1990",)),
    ],
)
def test_columns_of_usual_files_are_accepted_answers(
    row: str, accepted: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "qa.jsonl"
    file.write_text(row + "\n")
    (problem,) = load_problems(Problems(source=str(file)))
    assert accepted_answers(problem) == accepted


def test_the_grader_reads_aliases_and_its_vote_agrees() -> None:
    problem = Problem(id="1", prompt=(), answer="Paris", extra={"aliases": ["City of Paris"]})
    grade, vote = find_grader(Reward(grader="qa")), find_ballot(Reward(grader="qa"))
    assert grade(problem, single_turn("<answer>the City of Paris.</answer>")).status == "correct"
    assert grade(problem, single_turn("<answer>Paris, City of Paris</answer>")).status == "wrong"
    assert vote("<answer>the City of Paris.</answer>") == vote(r"\boxed{city of paris}") != vote("Paris")


@pytest.mark.parametrize(
    ("facts", "context"),
    [
        ([["A", 0], ["B", 2], ["A", 1]], [["A", ["One.", " Two."]], ["C", ["Three."]]]),
        (
            {"title": ["A", "B", "A"], "sent_id": [0, 2, 1]},
            {"title": ["A", "C"], "sentences": [["One.", " Two."], ["Three."]]},
        ),
    ],
)
def test_hotpotqa_in_both_forms_gives_evidence_and_passages(facts: Any, context: Any) -> None:
    problem = Problem(id="1", prompt=(), answer="x", extra={"supporting_facts": facts, "context": context})
    assert evidence_titles(problem) == ("A", "B")
    assert context_passages(problem) == [
        Passage(title="A", text="One. Two."),
        Passage(title="C", text="Three."),
    ]


def test_other_problems_have_neither_evidence_nor_passages() -> None:
    problem = Problem(id="1", prompt=(), answer="x", extra={"context": "a text"})
    assert (evidence_titles(problem), context_passages(problem)) == ((), [])


def test_a_corpus_row_without_a_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"title": "A", "text": "One."}\n{"title": "B"}\n')
    with pytest.raises(ValueError, match=r"corpus.jsonl:2: a passage needs the columns title and text"):
        list(read_corpus(file))


def test_hotpotqa_as_it_is_shipped() -> None:
    problems = load_problems(Problems(source=str(find_file("hotpotqa_100_distractor/qa.jsonl.gz"))))
    assert len(problems) == 100 == len({problem.id for problem in problems})
    titles = {passage.title for passage in read_corpus(find_file("hotpotqa_100_distractor/corpus.jsonl.gz"))}
    for problem in problems:
        evidence, passages = evidence_titles(problem), context_passages(problem)
        assert len(evidence) == 2 and set(evidence) <= {passage.title for passage in passages} <= titles
        assert accepted_answers(problem) == (problem.answer,)


def test_2wiki_as_it_is_shipped() -> None:
    problems = load_problems(Problems(source=str(find_file("2wiki/qa_matched_to_corpus.jsonl.gz"))))
    titles = {passage.title for passage in read_corpus(find_file("2wiki/corpus6119.jsonl.gz"))}
    assert len(problems) == 497
    assert all(evidence_titles(problem) and set(evidence_titles(problem)) <= titles for problem in problems)
