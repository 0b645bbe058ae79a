"""Verdicts as a whole: statuses, details, processes, and the shared rows. Meanings are in the case book."""

import json
import threading
from pathlib import Path

import pytest

from foresail.maths.verdict import FAULT, ballot, grade

ROOT = Path(__file__).parents[2]
VERIFIER = ROOT.parent / "shared/data/verifier"


@pytest.mark.parametrize("gold", ["", "  ", "$$", r"\text{}", r"\,", "NaN"])
def test_an_empty_answer_is_ungradable_whatever_is_said(gold: str):
    for response in ("", r"\boxed{}", r"\boxed{7}", rf"\boxed{{{gold}}}"):
        assert grade(response, gold).status == "ungradable"


@pytest.mark.parametrize(
    "response", ["", "Who knows?", r"\boxed{}", r"\boxed{\text{}}", r"\boxed{$$}", r"<think>\boxed{7}"]
)
def test_no_answer_is_unparsable(response: str):
    verdict = grade(response, "7")
    assert (verdict.status, verdict.score) == ("unparsable", 0.0)
    assert ballot(response) is None


def test_detail_tells_what_was_compared_and_how():
    assert grade(r"\boxed{0.5}", "1/2").detail == "boxed 0.5 against 1/2, compared by value"
    assert grade("#### 8", "7").detail == "stated 8 against 7, compared by integer"
    assert len(grade(r"\boxed{" + "x" * 99_000 + "}", "y" * 99_000).detail) <= 200


def test_the_box_outside_the_thinking_decides():
    response = r"<think>\boxed{7}, hm.</think> It is \boxed{9}."
    assert grade(response, "9").status == "correct"
    assert grade(response, "7").status == "wrong"


def test_a_number_that_is_none_equals_nothing():
    assert grade(r"\boxed{\frac{1}{0}}", r"\frac{1}{0}").status == "wrong"
    assert grade(r"\boxed{0^0}", "0^0").status == "wrong"


@pytest.mark.parametrize("gold", [r"\int_0^1 x", r"\sum_k k"])
def test_what_sympy_cannot_work_out_is_nobodys_wrong_answer(gold: str):
    assert grade(r"\boxed{7}", gold).status == "ungradable"


def test_a_fault_of_the_verifier_is_the_responses_or_the_problems_but_never_an_error(
    monkeypatch: pytest.MonkeyPatch,
):
    """Else a policy could drop the groups it does badly in."""

    def broken(*_: object) -> bool:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("foresail.maths.verdict.same_answer", broken)
    with pytest.warns(UserWarning, match="please report"):
        verdict = grade(r"\boxed{x+1}", "x+2")
    assert verdict.status == "wrong" and FAULT in verdict.detail
    monkeypatch.setattr("foresail.maths.verdict.new_work", broken)
    with pytest.warns(UserWarning, match="please report"):
        assert grade(r"\boxed{x+1}", "x+2").status == "ungradable"


@pytest.mark.parametrize(
    "form", ["{}", "({})_2", "x_{{{}}}", r"5\text{{ cm}}^{{{}}}", r"\frac{{1}}{{{}}}", "0.{}"]
)
@pytest.mark.parametrize("gold", ["7", "x^2", r"\sum_{k=1}^{10} k"])
def test_numbers_that_python_will_not_write_are_graded_all_the_same(form: str, gold: str):
    answer = form.format("1" * 5000)
    assert grade(rf"\boxed{{{answer}}}", gold).status == "wrong"
    assert grade(r"\boxed{7}", answer).status == "wrong"
    assert ballot(rf"\boxed{{{answer}}}")


def test_a_worked_solution_may_stand_for_the_answer():
    assert grade(r"\boxed{7}", r"We add and get $\boxed{7}$.").status == "correct"
    assert grade(r"\boxed{7}", "3 + 4 = 7\n#### 7").status == "correct"


def test_the_accepted_forms_are_the_callers_choice():
    assert [
        grade("The answer is 7.", "7", accept=accept).status for accept in ("boxed", "stated", "any")
    ] == [
        "unparsable",
        "correct",
        "correct",
    ]


def test_votes_are_equal_where_values_are():
    assert ballot(r"\boxed{0.5}") == ballot(r"\boxed{\frac{2}{4}}") == "1/2"
    assert ballot(r"\boxed{\sqrt{8}}") == ballot(r"\boxed{2\sqrt{2}}")
    assert ballot(r"\boxed{x + 1}") == ballot(r"\boxed{x+1}") != ballot(r"\boxed{x+2}")


def test_threads_do_not_share_a_precision():
    pairs = [(rf"\boxed{{\sqrt{{{n}}}+\sin {n}}}", rf"\sin({n})+{n}^{{1/2}}") for n in range(2, 40)]
    statuses: list[str] = []
    threads = [
        threading.Thread(target=lambda: statuses.extend(grade(*pair).status for pair in pairs))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == ["correct"] * 4 * len(pairs)


def shared_rows(name: str) -> list[dict]:
    path = VERIFIER / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no verifier rows at {path}")
    return [json.loads(line) for line in path.read_text().splitlines()]


def misses(rows: list[dict]) -> list[tuple[str, str, bool]]:
    return [
        (row["gold"], row["pred"], row["expected"])
        for row in rows
        if (grade(row["pred"], row["gold"]).status == "correct") != row["expected"]
    ]


@pytest.mark.parametrize("name", ["hard_cases", "reward_hack_cases"])
def test_shared_rows_are_right(name: str):
    assert misses([row for row in shared_rows(name) if not row["debatable"]]) == []


def test_shared_rows_of_math_verify_are_right():
    named = json.loads((ROOT / "benchmarks/verifier/mathverify_mislabelled.json").read_text())
    mislabelled = {row["index"] for row in named["rows"]}
    rows = [row for index, row in enumerate(shared_rows("mathverify_cases")) if index not in mislabelled]
    assert len(rows) >= 255
    assert len(misses(rows)) <= 1  # two boxes for steps, and the answer in words after them
