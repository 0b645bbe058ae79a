"""The lab on made e-commerce tasks: its rows, its controls, its figures, and one run from end to end."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import shop_lab
import shop_lab_rows
from shop_lab_figures import SPLITS, Outcomes, results_of, totals_of
from shop_lab_rows import cell_of, constant_answers, guess, question, rows_of_cells, shuffled_answers
from shop_lab_table import ATTRIBUTES, write_made_table
from shop_tables import write_table

from foresail.data.made.shop.read_table import read_table
from foresail.data.made.shop.table import Table

VALUE = ("extraction.value", "en")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "products.csv", seed=1, products=30)


@pytest.fixture(scope="module")
def table(path: Path) -> Table:
    return read_table(path, {})


def test_rows_of_a_cell_are_all_of_it_and_none_comes_twice(table: Table) -> None:
    seen: set[str] = set()
    cells = [VALUE, ("similarity.same", "en")]
    first = rows_of_cells(table, cells, "train", 40, seed=0, seen=seen)
    second = rows_of_cells(table, cells, "train", 40, seed=0, seen=seen)
    assert Counter(map(cell_of, first)) == Counter(map(cell_of, second)) == dict.fromkeys(cells, 40)
    assert len({question(row) for row in first + second}) == len(seen) == 160


def test_a_table_that_ends_gives_the_rows_it_has(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop_lab_rows, "TURNS", 1)
    rows = rows_of_cells(table, [VALUE], "test", 10**6, seed=0, seen=set())
    assert 0 < len(rows) < 10**6


def test_shuffled_answers_are_those_of_other_rows_of_the_form(table: Table) -> None:
    rows = rows_of_cells(table, [VALUE, ("numerical.discount", "en")], "train", 50, seed=0, seen=set())
    shuffled = shuffled_answers(rows, seed=0)
    pairs = [[(cell_of(row), row.extra["solution"]) for row in some] for some in (rows, shuffled)]
    assert Counter(pairs[0]) == Counter(pairs[1])
    assert sum(one == other for one, other in zip(*pairs, strict=True)) < 50
    assert [question(row) for row in rows] == [question(row) for row in shuffled]


def test_the_most_frequent_answer_is_right_as_often_as_it_comes(table: Table) -> None:
    rows = rows_of_cells(table, [("similarity.same", "en")], "train", 50, seed=0, seen=set())
    right = sum(guess(constant_answers(rows), row) for row in rows)
    assert right == max(Counter(row.answer for row in rows).values())


def outcomes(arm: str, seed: int, right: list[bool]) -> Outcomes:
    return Outcomes(seed=seed, arm=arm, right={split: {"extraction.value/en": right} for split in SPLITS})


def test_a_rise_is_counted_row_by_row_in_seeds_that_have_both() -> None:
    some, every, none = [True] * 5 + [False] * 15, [True] * 20, [False] * 20
    measured = [outcomes("start", 0, none), outcomes("trained", 0, every), outcomes("shuffled", 0, some)]
    measured += [outcomes("start", 1, none)]  # cut off after it
    totals = totals_of(results_of(measured))
    assert totals["rise"]["test"]["start"]["value"] == 1
    assert totals["rise"]["test"]["shuffled"]["value"] == 0.75
    assert totals["accuracy"]["test"]["start"]["problems"] == 40
    assert totals["rises"] == dict.fromkeys(SPLITS, True)
    assert not totals_of(results_of([outcomes("trained", 0, some), outcomes("start", 0, some)]))["rises"][
        "test"
    ]
    assert totals_of(results_of([])) == {}


def test_a_made_table_is_the_same_again_and_gives_rows_of_every_split(tmp_path: Path) -> None:
    for shared in (0, 5):
        first, second = (
            write_made_table(tmp_path / name, 30, shared_values=shared) for name in ("a.csv", "b.csv")
        )
        assert first.read_bytes() == second.read_bytes()
        rows = list(csv.DictReader(first.open()))
        values = {name: {row[name] for row in rows if row[name]} for name in ATTRIBUTES}
        assert (max(map(len, values.values())) <= 5) == bool(shared)
        table = read_table(first, {})
        assert all(rows_of_cells(table, [VALUE], split, 5, seed=0, seen=set()) for split in SPLITS)


def test_what_is_running_ends_with_the_budget() -> None:
    with pytest.raises(shop_lab.TimeUp), shop_lab.Budget(0.0005):
        time.sleep(60)


def test_the_smallest_lab_runs_and_is_read_when_run_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["shop_lab.py", "--table", str(path), "--out", str(tmp_path / "lab"), "--size", "smoke"]
    monkeypatch.setattr(sys, "argv", [*words, "--seeds", "0", "--rl-steps", "1"])
    shop_lab.main()
    before = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert before["finished"]
    assert [*before["accuracy"]["test"]] == ["constant", "start", "trained", "shuffled", "rl"]
    shop_lab.main()
    after = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert after | {"seconds": 0} == before | {"seconds": 0}
    monkeypatch.setattr(sys, "argv", [*words, "--set", "rows=30"])
    with pytest.raises(SystemExit, match="other settings"):
        shop_lab.main()
