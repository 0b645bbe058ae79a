"""`foresail grade` and `foresail data check-answers`, from the outside."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from tiny_world import write_lines

ROWS = [
    {"response": r"so \boxed{7}", "answer": "7", "is_correct": True},
    {"response": r"so \boxed{8}", "answer": "7", "is_correct": False},
    {"response": r"so \boxed{9}", "answer": "7", "is_correct": True},
    {"response": r"<think>\boxed{7}", "answer": "7", "is_correct": False},
    {"response": r"so \boxed{9}", "answer": "", "is_correct": True},
]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# One pair.


@pytest.mark.parametrize(
    ("response", "answer", "status", "score"),
    [
        (r"\boxed{0.5}", "1/2", "correct", "1"),
        (r"\boxed{-5}", "-5", "correct", "1"),
        (r"\boxed{4}", "5", "wrong", "0"),
    ],
)
def test_one_response_and_answer(
    foresail: CommandLine, response: str, answer: str, status: str, score: str
) -> None:
    done = foresail.run("grade", response, answer)
    assert done.code == 0 and done.err == ""
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert (lines["status"], lines["score"]) == (status, score) and lines["detail"]


# Files.


@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_of_responses(foresail: CommandLine, workers: int) -> None:
    write_lines(foresail.folder / "rows.jsonl", ROWS)
    done = foresail.run("grade", "rows.jsonl", "--workers", workers, "--out", "verdicts.jsonl")
    assert done.code == 0, done.err
    assert "5 verdicts," in done.out and "a second" in done.out
    counts = {line.split()[0]: line.split()[1:3] for line in done.out.splitlines() if line.startswith("  ")}
    assert counts["correct"] == ["1", "20.00"] and counts["wrong"] == ["2", "40.00"]
    assert counts["unparsable"] == ["1", "20.00"] and counts["ungradable"] == ["1", "20.00"]
    # the ungradable row is no disagreement: it says nothing about the response
    assert "agreement with the labels: 75.00 % (3 of 4)" in done.out
    assert "rows.jsonl:3: labelled correct, wrong:" in done.out and "rows.jsonl:5:" not in done.out
    verdicts = read_lines(foresail.folder / "verdicts.jsonl")
    assert [row["status"] for row in verdicts] == ["correct", "wrong", "wrong", "unparsable", "ungradable"]
    assert [row["place"] for row in verdicts] == [f"rows.jsonl:{number}" for number in range(1, 6)]
    assert verdicts[0]["score"] == 1.0 and verdicts[0]["expected"] is True and "7" in verdicts[0]["detail"]


def test_other_usual_names_and_own_ones(foresail: CommandLine) -> None:
    write_lines(foresail.folder / "a.jsonl", [{"pred": r"\boxed{1}", "gold": "$1$", "expected": True}])
    write_lines(foresail.folder / "b.jsonl", [{"said": r"\boxed{1}", "truth": 1.0, "label": 0}])
    assert "100.00 % (1 of 1)" in foresail.run("grade", "a.jsonl").out
    out = foresail.run("grade", "b.jsonl", "--response-key", "said", "--answer-key", "truth").out
    assert "agreement with the labels: 0.00 % (0 of 1)" in out and "labelled not correct, correct" in out


def test_without_labels_nothing_is_said_of_agreement(foresail: CommandLine) -> None:
    write_lines(foresail.folder / "rows.jsonl", [{"response": r"\boxed{1}", "answer": "1", "label": "easy"}])
    assert "agreement" not in foresail.run("grade", "rows.jsonl").out


def test_what_may_count_as_an_answer(foresail: CommandLine) -> None:
    write_lines(foresail.folder / "rows.jsonl", [{"response": "#### 7", "answer": "7"}])
    assert "correct " in foresail.run("grade", "rows.jsonl", "--accept", "stated").out
    assert "unparsable " in foresail.run("grade", "rows.jsonl", "--accept", "boxed").out
    assert foresail.run("grade", "rows.jsonl", "--accept", "everything").code == 2


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"response": "a"}], ("rows.jsonl:1", "no answer column", "found columns response")),
        ([{"text": "a", "answer": "1"}], ("rows.jsonl:1", "no response column", "set response_key")),
        ([{"response": "a", "answer": "1"}, {"answer": "1"}], ("rows.jsonl:2", "'response' is not there")),
        ([{"response": 7, "answer": "1"}], ("rows.jsonl:1", "must be text, found 7")),
    ],
)
def test_bad_rows_are_named(
    foresail: CommandLine, rows: list[dict[str, Any]], words: tuple[str, ...]
) -> None:
    write_lines(foresail.folder / "rows.jsonl", rows)
    done = foresail.run("grade", "rows.jsonl")
    assert done.code == 1 and done.err.startswith("error: ") and "Traceback" not in done.err
    for word in words:
        assert word in done.err


def test_a_file_that_is_not_there_or_no_json(foresail: CommandLine) -> None:
    assert "rows.jsonl does not exist" in foresail.run("grade", "rows.jsonl").err
    assert "give its answer after it" in foresail.run("grade", r"\boxed{7}").err
    (foresail.folder / "rows.jsonl").write_text('{"response": "a", "answer": "1"}\n{oops\n')
    assert "rows.jsonl:2: not JSON" in foresail.run("grade", "rows.jsonl").err


def test_text_that_no_terminal_can_show(foresail: CommandLine) -> None:
    """Half a character, as a response that was cut between two bytes may hold."""
    rows = [{"response": "\\boxed{\ud83d\n\x1b}", "answer": "\ud83d", "is_correct": True} for _ in range(2)]
    write_lines(foresail.folder / "rows.jsonl", rows)
    done = foresail.run("grade", "rows.jsonl", "--out", "verdicts.jsonl")
    assert done.code == 0 and "2 verdicts" in done.out, done.err
    assert len(read_lines(foresail.folder / "verdicts.jsonl")) == 2
    assert foresail.run("data", "check-answers", "rows.jsonl", "--out", "doubtful.jsonl").code == 0


# Answers.


def test_answers_are_checked_against_themselves_and_their_solutions(foresail: CommandLine) -> None:
    rows = [
        {"problem": "?", "answer": "7", "solution": r"so $\boxed{7}$"},
        {"problem": "?", "answer": "8", "solution": r"so $\boxed{7}$"},
        {"problem": "?", "answer": "9", "solution": "no box"},
        {"problem": "?", "answer": ["1/2"], "solution": [r"so \boxed{0.5}"]},
        {"problem": "?", "answer": "", "solution": r"so \boxed{3}"},
    ]
    with gzip.open(foresail.folder / "rows.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    done = foresail.run("data", "check-answers", "rows.jsonl.gz", "--out", "doubtful.jsonl")
    assert done.code == 0, done.err
    assert "against itself: 80.00 % correct (4 of 5)" in done.out
    assert "against its solution: 66.66 % correct (2 of 3); 1 solutions state none" in done.out
    assert "rows.jsonl.gz:2: wrong against its solution: '8'" in done.out
    assert "rows.jsonl.gz:5: ungradable against itself: ''" in done.out
    doubtful = read_lines(foresail.folder / "doubtful.jsonl")
    assert [(row["place"], row["against"]) for row in doubtful] == [
        ("rows.jsonl.gz:2", "its solution"),
        ("rows.jsonl.gz:5", "itself"),
    ]


def test_gsm8k_answers_are_solutions_too(foresail: CommandLine) -> None:
    rows = [{"question": "?", "answer": "9 * 2 = 18\n#### 18"}, {"question": "?", "answer": "18"}]
    write_lines(foresail.folder / "rows.jsonl", rows)
    out = foresail.run("data", "check-answers", "rows.jsonl").out
    assert "against itself: 100.00 % correct (2 of 2)" in out
    assert "against its solution: 100.00 % correct (1 of 1)" in out  # the second row has none


def test_only_so_many_are_printed(foresail: CommandLine) -> None:
    write_lines(foresail.folder / "rows.jsonl", [{"question": "?", "answer": ""} for _ in range(9)])
    out = foresail.run("data", "check-answers", "rows.jsonl", "--show", 2).out
    assert "none of 0 solutions states one" in out
    assert out.count("ungradable against itself") == 2 and out.endswith("and 7 more\n")


def test_answers_under_another_name(foresail: CommandLine) -> None:
    write_lines(foresail.folder / "rows.jsonl", [{"q": "?", "gold": "7", "work": r"\boxed{7}"}])
    done = foresail.run("data", "check-answers", "rows.jsonl")
    assert done.code == 1 and "no answer column" in done.err
    words = ("--answer-key", "gold", "--solution-key", "work")
    assert "its solution: 100.00 %" in foresail.run("data", "check-answers", "rows.jsonl", *words).out
