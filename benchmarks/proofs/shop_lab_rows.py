"""Rows of `shop-tasks:` for shop_lab.py: so many of each form and language, none twice; and shuffled answers.

A form is a task with one of its questions: "extraction.value".
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

from foresail.data.made.shop.catalogue import TASKS
from foresail.data.made.shop.plan import Plan
from foresail.data.made.shop.rows import make_row
from foresail.data.made.shop.table import Table
from foresail.records import Problem
from foresail.rewards.structured.grade import grade
from foresail.runlog.atomic import write_text

FORMS = tuple(f"{task}.{form.name}" for task, forms in TASKS.items() for form in forms)
TURNS = 40  # seeds that are tried for rows that are new; a table of few products gives the same ones again

Cell = tuple[str, str]  # form and language


def cell_of(problem: Problem) -> Cell:
    made = problem.extra["made"]
    return f"{made['task']}.{made['form']}", made["language"]


def question(problem: Problem) -> str:
    return problem.prompt[-1].content


def new_rows(table: Table, cell: Cell, split: str, seed: int, seen: set[str]) -> Iterator[Problem]:
    """Rows of a form and language whose questions are not in `seen`, which grows by them."""
    task, _, name = cell[0].partition(".")
    for turn in range(TURNS):
        plan = Plan(table=table, seed=TURNS * seed + turn, languages=(cell[1],), tasks=(task,), split=split)
        if name not in {stratum.form.name for stratum in plan.strata[task, cell[1]]}:
            return  # the split has too few products for it
        for number in range(plan.capacity):
            if plan.place(number).form.name == name:
                row = make_row(plan, number)
                if question(row) not in seen:
                    seen.add(question(row))
                    yield row


def rows_of_cells(
    table: Table,
    cells: Sequence[Cell],
    split: str,
    count: int,
    *,
    seed: int,
    seen: set[str],
) -> list[Problem]:
    """`count` rows of each cell, or as many as there are, in a random order."""
    rows = [row for cell in cells for row in islice(new_rows(table, cell, split, seed, seen), count)]
    Random(f"shop lab {seed} {split}").shuffle(rows)
    return rows


def shuffled_answers(rows: Sequence[Problem], seed: int) -> list[Problem]:
    """Each row with the worked answer of another of its form and language: only the format can be learned."""
    places = defaultdict(list)
    for place, row in enumerate(rows):
        places[cell_of(row)].append(place)
    shuffled = list(rows)
    for cell, own in sorted(places.items()):
        others = own[:]
        Random(f"shop lab {seed} {cell}").shuffle(others)
        for place, other in zip(own, others, strict=True):
            extra = {**rows[place].extra, "solution": rows[other].extra["solution"]}
            shuffled[place] = replace(rows[place], extra=extra)
    return shuffled


def constant_answers(rows: Iterable[Problem]) -> dict[Cell, str]:
    """Of each form and language, the answer that most rows have, in the format that is asked for."""
    counts: dict[Cell, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[cell_of(row)][row.extra["solution"].splitlines()[-1]] += 1
    return {cell: max(sorted(of), key=of.__getitem__) for cell, of in counts.items()}


def guess(constants: Mapping[Cell, str], row: Problem) -> bool:
    return grade(row, constants.get(cell_of(row), "")).status == "correct"


def write_conversations(path: Path, rows: Iterable[Problem]) -> None:
    write_lines(path, ({"prompt": question(row), "completion": row.extra["solution"]} for row in rows))


def write_problems(path: Path, rows: Iterable[Problem]) -> None:
    write_lines(
        path,
        (
            {"id": row.id, "prompt": question(row), "answer": row.answer, "check": row.extra["check"]}
            for row in rows
        ),
    )


def write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
