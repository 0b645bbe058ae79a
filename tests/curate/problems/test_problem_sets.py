"""The steps that see all problems: same_problems, pass_rates, balance; and majority, problem_kind."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from planted_faults import sound

from foresail.curate.document import Document, Drop
from foresail.curate.problems.kind import ProblemKind
from foresail.curate.problems.majority import Majority, outvoting
from foresail.curate.problems.pass_rates import PassRates
from foresail.curate.problems.same_problems import SameProblems
from foresail.curate.rows.row import read_row
from foresail.curate.select.balance import Balance, even_quotas


def problems(rows: list[dict]) -> list[Document]:
    read = [read_row(row, f"p{number}", "made", "problems") for number, row in enumerate(rows)]
    return [document for document in read if isinstance(document, Document)]


def apply(step, documents: list[Document], folder: Path, pieces: int = 2) -> list[Document | Drop]:
    """As a curation does it, over pieces."""
    cut = -(-len(documents) // pieces)
    parts = [documents[start : start + cut] for start in range(0, len(documents), cut)]
    features, decisions = ([folder / f"{kind}{n}" for n in range(len(parts))] for kind in "fd")
    for part, file in zip(parts, features, strict=True):
        step.collect(part, file)
    (folder / "scratch").mkdir()
    step.decide(features, decisions, folder / "scratch")
    outcomes = []
    for part, file in zip(parts, decisions, strict=True):
        opened = step.open(file)
        outcomes += [opened(number, document) for number, document in enumerate(part)]
    return outcomes


def reasons(outcomes: list[Document | Drop]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Drop) else "" for outcome in outcomes]


def respelt(row: dict, rng: random.Random) -> dict:
    """The same problem in another layout, with an answer written otherwise."""
    text = row["problem"].replace("$", rng.choice(("$", " $ ", "")))
    text = rng.choice(("", "  ")) + text.replace(". ", rng.choice((".\n", ". ")))
    answer = row["answer"]
    return {"problem": text, "answer": rng.choice((answer, f"${answer}$", f" {answer} "))}


def other_number(row: dict, rng: random.Random) -> dict:
    text, digits = row["problem"], [place for place, sign in enumerate(row["problem"]) if sign.isdigit()]
    place = rng.choice(digits)
    changed = str((int(text[place]) + rng.randint(1, 8)) % 9 + 1)
    return {"problem": text[:place] + changed + text[place + 1 :], "answer": row["answer"]}


def test_respelt_problems_are_one_and_other_numbers_are_others(tmp_path):
    rng = random.Random(1)
    own = list({row["problem"]: row for row in (sound(rng) for _ in range(60))}.values())
    others = [
        row
        for row in (other_number(row, rng) for row in own)
        if row["problem"] not in {r["problem"] for r in own}
    ]
    others = list({row["problem"]: row for row in others}.values())
    rows = [*own, *others, *(respelt(row, rng) for row in own)]
    decided = reasons(apply(SameProblems(), problems(rows), tmp_path, pieces=3))
    assert decided[: len(own) + len(others)] == [""] * (len(own) + len(others))
    assert set(decided[len(own) + len(others) :]) == {"same_problem"}


def test_copies_with_another_answer_are_all_dropped(tmp_path):
    text = "Let $x$ be a number with $x + 12 = 40$. What is the value of $x$ in this equation?"
    rows = [
        {"problem": text, "answer": "28"},
        {"problem": text + " ", "answer": "29"},
        {"problem": text, "answer": "56/2"},
    ]
    (tmp_path / "a").mkdir()
    decided = apply(SameProblems(), problems(rows), tmp_path / "a")
    assert reasons(decided) == ["conflicting_answers", "conflicting_answers", "same_problem"]
    (tmp_path / "b").mkdir()
    staying = apply(SameProblems(conflicting=False), problems(rows), tmp_path / "b")
    assert reasons(staying) == ["", "", "same_problem"]


def test_pass_rates_make_a_window_and_levels(tmp_path):
    rows = [
        {"problem": f"What is {n} + {n}?", "answer": str(2 * n), "rates": [n / 10, n / 10]} for n in range(11)
    ]
    decided = apply(PassRates(key="rates", least=0.1, most=0.9), problems(rows), tmp_path)
    assert reasons(decided) == ["too_hard", *[""] * 9, "too_easy"]
    levels = [outcome.metadata["level"] for outcome in decided if isinstance(outcome, Document)]
    assert levels == sorted(levels, reverse=True) and {1, 5} <= {*levels}
    records = tmp_path / "difficulty.jsonl"
    records.write_text("".join(json.dumps({"id": f"p{n}", "pass_rate": n / 10}) + "\n" for n in range(1, 6)))
    (tmp_path / "again").mkdir()
    step = PassRates(records=str(records), most=0.4, unmeasured="drop")
    assert reasons(apply(step, problems(rows), tmp_path / "again")) == [
        "unmeasured", "", "", "", "", "too_easy", *["unmeasured"] * 5,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="set records"):
        PassRates()


@pytest.mark.parametrize("seed", range(5))
def test_balance_is_even_and_depends_on_ids_alone(tmp_path, seed):
    rng = random.Random(seed)
    documents = [
        Document(id=f"d{n}", text="t", metadata={"topic": rng.choice("aaaaabbc"), "level": 1})
        for n in range(120)
    ]
    step = Balance(total=60, seed=seed)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = apply(step, documents, tmp_path / "a", pieces=4)
    staying = {outcome.id for outcome in first if isinstance(outcome, Document)}
    again = apply(step, documents[::-1], tmp_path / "b", pieces=3)
    assert (
        staying == {outcome.id for outcome in again if isinstance(outcome, Document)} and len(staying) == 60
    )
    counts = Counter(document.metadata["topic"] for document in documents if document.id in staying)
    sizes = Counter(document.metadata["topic"] for document in documents)
    cut = [counts[topic] for topic in sizes if counts[topic] < sizes[topic]]
    assert not cut or max(counts.values()) - min(cut) <= 1


def test_quotas_fill_like_water():
    rng = random.Random(1)
    for _ in range(200):
        sizes = {str(n): rng.randint(1, 30) for n in range(rng.randint(1, 8))}
        total, most = rng.randint(1, 200), rng.randint(1, 40)
        quotas = even_quotas(sizes, total, most)
        capped = sum(min(size, most) for size in sizes.values())
        assert sum(quotas.values()) == min(total, capped)
        assert all(quotas[name] <= min(size, most) for name, size in sizes.items())
        below = [quotas[name] for name, size in sizes.items() if quotas[name] < min(size, most)]
        assert not below or max(quotas.values()) - min(below) <= 1


def test_a_clear_majority_against_the_answer_is_named(tmp_path):
    file = tmp_path / "samples.jsonl"
    right = {
        "problem": "What is $1/2 + 1/4$?",
        "responses": [r"\boxed{3/4}", r"\boxed{0.75}", r"\boxed{\frac{6}{8}}", "?"],
    }
    wrong = {"id": "p1", "responses": [r"so \boxed{7}"] * 3 + [r"\boxed{8}"]}
    few = {"id": "p2", "responses": [r"\boxed{7}"] * 2}
    file.write_text("".join(json.dumps(row) + "\n" for row in (right, wrong, few)))
    rows = [
        {"problem": "What is $1/2 + 1/4$ ?", "answer": r"\frac{3}{4}"},
        {"problem": "How many?", "answer": "8"},
        {"problem": "How many now?", "answer": "8"},
        {"problem": "And this?", "answer": "8"},
    ]
    step = Majority(responses=str(file))
    step.preflight()
    named = [step.open()(document) for document in problems(rows)]
    assert [outcome.metadata.get("majority") for outcome in named if isinstance(outcome, Document)] == [
        None,
        "7",
        None,
        None,
    ]
    dropped = Majority(responses=str(file), drop=True).open()
    assert reasons([dropped(document) for document in problems(rows)]) == ["", "outvoted", "", ""]
    assert outvoting(["nothing"], "3") == (None, 0.0)


def test_kind_topic_and_level_are_written():
    rows = [
        {
            "problem": "Find the area of triangle $ABC$.",
            "answer": "6",
            "type": "Counting & Probability",
            "level": "Level 5",
        },
        {"problem": "Find the area of triangle $ABC$.", "answer": "6", "level": "Level ?"},
        {"text": "Reverse a string.", "test_list": ["assert f('a') == 'a'"], "meta": {"difficulty": "Hard"}},
    ]
    step = ProblemKind().open()
    assert [step(document).metadata for document in problems(rows)] == [
        {"kind": "maths", "topic": "counting_and_probability", "level": 5},
        {"kind": "maths", "topic": "geometry"},
        {"kind": "code", "topic": "strings", "level": 5},
    ]
