import json
from dataclasses import asdict
from itertools import combinations
from statistics import fmean

import pytest

from foresail.evaluation.interval import bootstrap_interval, wilson_interval
from foresail.evaluation.results import Attempt, ProblemResult, summarise, to_json
from foresail.records import FAILURES, Status

GOLD = "7"


def attempt(answer: str | None, length: int = 10) -> Attempt:
    status: Status = "unparsable" if answer is None else "correct" if answer == GOLD else "wrong"
    return Attempt(status=status, answer=answer, length=length)


def failure(status: Status = "timeout") -> Attempt:
    return Attempt(status=status, answer=GOLD, length=10)


def problem(name: str, greedy: Attempt | None, *samples: Attempt) -> ProblemResult:
    return ProblemResult(problem_id=name, greedy=greedy, samples=samples)


def test_summary_of_two_problems_by_hand():
    summary = summarise(
        [
            problem("a", attempt("7", length=20), attempt("7"), attempt("7"), attempt("8"), attempt(None)),
            problem(
                "b",
                attempt("8", length=40),
                attempt("8"),
                attempt("8"),
                attempt("7"),
                attempt("8", length=90),
            ),
        ]
    )
    values = {name: entry["value"] for name, entry in summary.items() if "@" in name or name == "greedy"}
    # pass@2: a holds 2 of 4 correct, 1 - C(2,2)/C(4,2) = 5/6; b holds 1 of 4, 1 - C(3,2)/C(4,2) = 1/2.
    expected = {"greedy": 0.5, "mean@4": 0.375, "pass@1": 0.375, "pass@2": 2 / 3, "pass@4": 1.0, "maj@4": 0.5}
    assert values == pytest.approx(expected)
    assert list(values) == list(expected)
    assert (summary["greedy"]["low"], summary["greedy"]["high"]) == wilson_interval(1, 2)
    assert (summary["mean@4"]["low"], summary["mean@4"]["high"]) == bootstrap_interval([0.5, 0.25])
    assert summary["problems"] == 2
    assert summary["greedy_attempts"]["mean_length"] == 30
    assert summary["samples"] == {
        "count": 8,
        "failures": 0,
        "statuses": {"correct": 3, "wrong": 4, "unparsable": 1},
        "mean_length": 20,
    }


@pytest.mark.parametrize("status", sorted(FAILURES))
def test_failures_are_counted_and_change_no_figure(status: Status):
    clean = [
        problem("a", attempt("7"), attempt("7"), attempt("8")),
        problem("b", None, attempt("8"), attempt("8")),
    ]
    marred = [
        problem("a", attempt("7"), attempt("7"), attempt("8")),
        problem("b", failure(status), attempt("8"), attempt("8")),
        problem("c", failure(status), failure(status), failure(status)),
    ]
    before, after = summarise(clean), summarise(marred)
    for name in ("greedy", "mean@2", "pass@1", "pass@2", "maj@2"):
        assert after[name] == before[name]
    assert after["problems"] == 3
    assert after["greedy_attempts"]["failures"] == 2
    assert after["samples"]["failures"] == after["samples"]["statuses"][status] == 2


def test_pass_at_k_takes_the_problems_that_still_have_k_samples():
    summary = summarise(
        [problem("a", None, attempt("7"), attempt("8")), problem("b", None, attempt("7"), failure())]
    )
    assert summary["pass@1"]["value"] == 0.75
    assert summary["pass@1"]["problems"] == 2
    assert summary["pass@2"]["problems"] == 1
    assert summary["mean@2"]["value"] == 0.75


@pytest.mark.parametrize("n", range(1, 13))
def test_pass_at_n_stands_beside_the_powers_of_two(n: int):
    """Each is the share of all subsets of k samples that hold a right one, counted one by one."""
    samples = [attempt("7" if number % 3 == 1 else "8") for number in range(n)]
    summary = summarise([problem("a", None, *samples)])
    sizes = [int(name.removeprefix("pass@")) for name in summary if name.startswith("pass@")]
    assert sizes == sorted({k for k in (1, 2, 4, 8, n) if k <= n})
    for k in sizes:
        hits = [any(sample.correct for sample in some) for some in combinations(samples, k)]
        assert summary[f"pass@{k}"]["value"] == pytest.approx(fmean(hits))


def test_figures_that_nothing_supports_are_left_out():
    assert summarise([]).keys() == {"problems", "greedy_attempts", "samples"}
    assert "greedy" not in summarise([problem("a", None, attempt("7"))])
    assert summarise([problem("a", attempt("7"))]).keys() == {
        "problems",
        "greedy",
        "greedy_attempts",
        "samples",
    }
    assert summarise([problem("a", failure(), failure())]).keys() == {
        "problems",
        "greedy_attempts",
        "samples",
    }


def test_results_and_summary_are_json():
    result = problem("a", attempt("7"), attempt("8"), failure())
    assert json.loads(json.dumps(asdict(result)))["samples"][1]["status"] == "timeout"
    json.dumps(summarise([result]), allow_nan=False)


def test_what_graders_say_besides_has_figures_of_its_own_without_failures():
    def near(status: Status, f1: float) -> Attempt:
        return Attempt(status=status, answer="x", length=10, shares={"f1": f1})

    results = [
        problem("a", near("correct", 1.0), near("correct", 1.0), near("wrong", 0.5)),
        problem("b", near("wrong", 0.25), near("wrong", 0.25), failure()),
    ]
    summary = summarise(results)
    assert [summary[name]["value"] for name in ("greedy f1", "mean@2 f1")] == [0.625, 0.5]
    assert summary["greedy"]["value"] == 0.5 and summary["mean@2"]["value"] == 0.25
    assert not any("f1" in name for name in summarise([problem("a", attempt("7"), attempt("7"))]))
    assert to_json(near("wrong", 0.5))["shares"] == {"f1": 0.5} and "shares" not in to_json(attempt("7"))
