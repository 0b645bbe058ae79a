"""Questions over passages: in every way the answer follows from the passages that are shown."""

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.made.generators import generate
from foresail.data.made.passages.library import read_library
from foresail.data.made.passages.replacements import asked_for, other_answer
from foresail.data.made.passages.ways import UNANSWERABLE
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems

QA = Path(__file__).parents[4] / "shared" / "data" / "qa"
HOTPOT = QA / "hotpotqa_100_distractor"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> str:
    """Small towns: each has a founder and a year, and a river that is said elsewhere."""
    folder = tmp_path_factory.mktemp("towns")
    names = [f"{first}{last}" for first in ("Al", "Bor", "Cel", "Dun") for last in ("ford", "wick", "mouth")]
    people = [f"{name} {name[::-1].capitalize()}" for name in ("Ada", "Ben", "Cid", "Dot", "Eli", "Fay")]
    questions, corpus = [], []
    for number, town in enumerate(names):
        founder, year = people[number % 6], 1500 + 37 * number
        corpus.append({"title": town, "text": f"{town} was founded in {year} by {founder}, a miller."})
        river = f"River {number}{'abcdefghijkl'[number]}"
        corpus.append(
            {"title": river, "text": f"{river} is crossed by a bridge in {town}. It is {number + 3} km long."}
        )
        questions.append({"question": f"Who founded {town}?", "answer": founder, "titles": [town]})
        questions.append(
            {"question": f"In what year was {town} founded?", "answer": str(year), "titles": [town]}
        )
        both = f"Who founded the town with a bridge over {river}?"
        questions.append({"question": both, "answer": founder, "titles": [river, town]})
    for name, rows in (("qa.jsonl", questions), ("corpus.jsonl", corpus)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"file={folder}/qa.jsonl,corpus={folder}/corpus.jsonl"


def originals(files: str) -> dict[str, str]:
    path = Path(re.match(r"file=([^,]*)", files)[1])
    return {row["question"]: row["answer"] for row in map(json.loads, path.read_text().splitlines())}


def shown(problem) -> str:
    """The passages of a prompt, without the question."""
    return problem.prompt[0].content.replace(problem.extra["question"], "")


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6))
def test_answers_follow_from_what_is_shown(files, seed):
    truth = originals(files)
    for problem in generate(f"passage-qa:{files},count=24,seed={seed},passages=3-5"):
        true, text = truth[problem.extra["question"]], shown(problem)
        match problem.extra["way"]:
            case "noise" | "integration":
                assert problem.answer == true and true in text
            case "rejection":
                assert problem.answer == UNANSWERABLE and true not in text
            case "counterfactual":
                assert problem.answer != true and problem.answer in text and true not in text
        evidence = problem.extra["made"]["evidence"]
        assert (evidence == []) == (problem.extra["way"] == "rejection")
        if problem.extra["way"] == "integration":
            assert len(evidence) == 2


def test_settings_decide_everything_and_prompts_differ(files):
    spec = f"passage-qa:{files},count=80,seed=3"
    problems = generate(spec)
    assert problems == generate(spec) and problems[:40] == generate(spec.replace("80", "40"))
    assert len({problem.prompt[0].content for problem in problems}) == 80
    assert len({problem.id for problem in problems}) == 80
    test = generate(f"passage-qa:{files},count=8,seed=3,split=test")
    assert not {one.extra["question"] for one in test} & {one.extra["question"] for one in problems}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("file=qa.jsonl", "passage-qa needs count"),
        ("count=3", "passage-qa needs file"),
        ("{files},count=3,ways=noise+noisy", "unknown passage-qa way 'noisy'; did you mean noise"),
        ("{files},count=100000", r"gives \d+ problems of split=train in these ways; write count="),
        ("{files},count=3,split=dev", "unknown passage-qa split 'dev'"),
    ],
)
def test_what_cannot_be_made_is_an_error(files, wrong, message):
    with pytest.raises(ValueError, match=message):
        generate("passage-qa:" + wrong.format(files=files))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"question": "?", "answer": 4, "titles": ["a"]}], r"qa\.jsonl:1: a row needs question and answer"),
        ([{"question": "?", "answer": "4", "titles": ["a"]}], "has no question whose passages are known"),
        ([{"question": "?", "answer": "4", "context": [["a"]]}], r"qa\.jsonl:1: context must be a list of"),
        *(
            ([{"question": "?", "answer": "4", **wrong}], rf"qa\.jsonl:1: {name} must be")
            for name, wrong in (
                ("context", {"context": [[["a"], ["b"]]]}),
                ("context", {"context": [[3, ["b"]]]}),
                ("context", {"context": {"title": ["a"]}}),
                ("context", {"context": {"title": ["a"], "sentences": []}}),
                ("supporting_facts", {"titles": 3.5}),
                ("supporting_facts", {"titles": [["a"]]}),
                ("supporting_facts", {"supporting_facts": [[]]}),
                ("supporting_facts", {"supporting_facts": {"sent_id": [1]}}),
            )
        ),
    ],
)
def test_files_of_another_form_are_named(tmp_path, rows, message):
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=message):
        generate(f"passage-qa:file={tmp_path}/qa.jsonl,count=1")


def test_columns_of_lists_are_the_same_as_lists_of_pairs(tmp_path):
    asked = {"id": "1", "question": "Who wrote it in the end?", "answer": "Ada"}
    pairs = {"context": [["a", ["Ada ", "wrote."]], ["b", ["No."]]], "supporting_facts": [["a", 0], ["a", 1]]}
    columns = {
        "context": {"title": ["a", "b"], "sentences": [["Ada ", "wrote."], ["No."]]},
        "supporting_facts": {"title": ["a", "a"], "sent_id": [0, 1]},
    }
    libraries = []
    for form in (pairs, columns):
        (tmp_path / "qa.jsonl").write_text(json.dumps(asked | form) + "\n")
        libraries.append(read_library(str(tmp_path / "qa.jsonl"), None))
    assert libraries[0] == libraries[1] and [one.title for one in libraries[0].questions[0].gold] == ["a"]


def test_halves_of_characters_do_not_pass(tmp_path):
    row = {
        "question": "Who \ud800 was it in the end?",
        "answer": "Ada\udfff",
        "titles": ["a"],
        "context": [["a", ["Ada."]]],
    }
    (tmp_path / "qa.jsonl").write_text(json.dumps(row) + "\n")
    (question,) = read_library(str(tmp_path / "qa.jsonl"), None).questions
    assert (question.text, question.answer) == ("Who ? was it in the end?", "Ada?")


def test_what_a_question_asks_for():
    assert asked_for("In what city was the man who wrote it born?") == "where"
    assert asked_for("What is the name of the band of the man who sang?") == "band"
    assert asked_for("Who wrote it?") == "who"
    assert asked_for("The man who wrote it was born when?") is None


@given(st.from_regex(r"\A(\d{1,7}|[12]\d{3}|\d{1,2}th century|about \d{2} km)\Z"), st.integers(0, 999))
def test_a_changed_number_is_another_one_of_its_form(answer, seed):
    other = other_answer(answer, "?", {}, random.Random(seed))
    assert other is not None and other != answer
    assert re.sub(r"\d", "", other) == re.sub(r"\d", "", answer)


@pytest.mark.skipif(not HOTPOT.is_dir(), reason="needs the shared folder qa/hotpotqa_100_distractor")
def test_hotpot_rows_are_read_as_a_recipe_reads_them():
    spec = f"passage-qa:file={HOTPOT}/qa.jsonl.gz,count=40,seed=1"
    problems = load_problems(Problems(source=spec))
    assert len(problems) == 40 and {problem.extra["way"] for problem in problems} == {
        "noise",
        "rejection",
        "integration",
        "counterfactual",
    }
