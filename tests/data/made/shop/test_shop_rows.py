"""Rows of e-commerce tasks: right answers, spread evenly, the same in any order, and splits that never meet."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from shop_tables import write_table

from foresail.data.chats.conversations import load_conversations
from foresail.data.made.generators import generate
from foresail.data.made.shop.catalogue import TASKS
from foresail.data.made.shop.language import LANGUAGES
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem
from foresail.rewards.structured.grade import grade

COUNT = len(TASKS) * len(LANGUAGES) * 2


def wrong_answers(problem: Problem) -> list[str]:
    """Answers that differ in what matters."""
    check, answer = problem.extra["check"], problem.answer
    match check["kind"]:
        case "choice":
            return [letter for letter in check["options"] if letter != answer]
        case "number":
            return [
                f"1{answer}",
                f"{answer}1" if "." not in answer + check["decimal"] * 0 else f"-{answer}",
                "0.001",
            ]
        case "text":
            return [f"{answer} or not", f"not {answer}", "x"]
        case "list":
            return [
                check["items"][0] + " x",
                ", ".join([*check["items"], "another"]),
                *(check["items"][1:] or ["x"]),
            ]
        case "json":
            fields = json.loads(answer)
            first = next(iter(fields))
            without = {key: value for key, value in fields.items() if key != first}
            return [json.dumps(one) for one in (without, fields | {first: "x"}, fields | {"another": None})]
        case _:
            return [
                answer.replace(check["contains"][-1], "x"),
                answer + " x" * 40,
                *(f"{answer} {term}" for term in check["excludes"]),
            ]


@pytest.fixture(scope="module", params=[1, 2])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with cents, one with whole prices."""
    folder = tmp_path_factory.mktemp("tables")
    return write_table(folder / f"shop-{request.param}.csv", request.param, whole_prices=request.param == 2)


def test_answers_pass_their_grader_and_others_do_not(table: Path) -> None:
    for split in ("train", "test"):
        rows = generate(f"shop-tasks:table={table},count={COUNT},seed=3,split={split}")
        for problem in rows:
            assert not re.search(r"\{\w+\}", problem.prompt[0].content), problem.prompt[0].content
            assert grade(problem, problem.answer).status == "correct", problem
            assert grade(problem, problem.extra["solution"]).status == "correct", problem
            for wrong in wrong_answers(problem):
                verdict = grade(problem, wrong)
                assert verdict.status in ("wrong", "unparsable"), (problem, wrong)


def test_rows_are_spread_evenly_and_none_comes_twice(table: Path) -> None:
    rows = generate(f"shop-tasks:table={table},count={COUNT + 7},seed=1")
    cells = Counter((one.extra["made"]["task"], one.extra["made"]["language"]) for one in rows)
    assert len(cells) == len(TASKS) * len(LANGUAGES)
    assert max(cells.values()) - min(cells.values()) <= 1
    assert len({one.id for one in rows}) == len({one.prompt for one in rows}) == len(rows)
    forms = Counter((one.extra["made"]["language"], one.extra["made"]["template"]) for one in rows)
    assert len(forms) > 1.5 * len(cells)


def test_as_many_rows_as_the_table_gives_and_no_more(tmp_path: Path) -> None:
    table = write_table(tmp_path / "small.csv", seed=5, products=20)
    source = f"shop-tasks:table={table},languages=en,tasks=matching+numerical,seed=2,count="
    with pytest.raises(
        ValueError, match=r"count 9000000 is not between 1 and \d+: so many different rows"
    ) as error:
        generate(f"{source}9000000")
    most = int(re.findall(r"1 and (\d+)", str(error.value))[0])
    rows = generate(f"{source}{most}")
    assert len({one.prompt for one in rows}) == most
    anchors = Counter((one.extra["made"]["form"], one.extra["made"]["rows"][0]) for one in rows[: most // 4])
    assert max(anchors.values()) < 12  # turns are taken: nothing is asked of one row again and again


def test_a_row_depends_on_its_number_alone(table: Path) -> None:
    source = f"shop-tasks:table={table},languages=en+th,seed=7,count="
    rows = generate(f"{source}{COUNT}")
    order, again = Random(1).sample(range(COUNT), 40), generate(f"{source}{COUNT - 1}")
    assert [again[n] for n in order if n < COUNT - 1] == [rows[n] for n in order if n < COUNT - 1]
    assert generate(f"{source}50")[20:30] == rows[20:30]
    assert generate(f"{source}50,seed=8")[0] != rows[0]
    with pytest.raises(IndexError):
        rows[COUNT]


def test_splits_share_neither_products_nor_phrases_where_they_say_so(table: Path) -> None:
    source = f"shop-tasks:table={table},count={COUNT},seed=1,split="
    splits = ("train", "test", "test-products", "test-templates")
    rows = {split: generate(source + split)[:] for split in splits}
    variants = {s: {row for one in rows[s] for row in one.extra["made"]["rows"]} for s in splits}
    templates = {s: {one.extra["made"]["template"] for one in rows[s]} for s in splits}
    assert not variants["train"] & (variants["test"] | variants["test-products"])
    assert not templates["train"] & (templates["test"] | templates["test-templates"])
    phrases = {s: {name.split("/")[1] for name in templates[s]} for s in splits}
    assert phrases == {
        "train": {"train"},
        "test": {"test"},
        "test-products": {"train"},
        "test-templates": {"test"},
    }
    sold = {row["name"]: row for row in read_rows(table)}
    shown = {s: {name for one in rows[s] for name in sold if names(one, name)} for s in splits}
    assert not shown["train"] & shown["test"] and not shown["test-templates"] & shown["test-products"]
    lines = {s: {line for one in rows[s] for line in one.prompt[0].content.splitlines()} for s in splits}
    instructions = [{line for line in lines[s] if "Answer:" in line} for s in ("train", "test")]
    assert all(instructions) and not instructions[0] & instructions[1]


def read_rows(table: Path) -> list[dict[str, str]]:
    first, *other_lines = table.read_text(encoding="utf-8").splitlines()
    return [dict(zip(first.split(","), line.split(","), strict=True)) for line in other_lines]


def names(problem: Problem, name: str) -> bool:
    """As a product: words of phrases, such as box, may be a product's name too."""
    return (
        re.search(rf"(?:^|[“\-.:|] ?){name}(?: \(|”|$| \|)", problem.prompt[0].content, re.MULTILINE)
        is not None
    )


def test_provenance_leads_to_the_rows_of_the_table(table: Path) -> None:
    sold = read_rows(table)
    for problem in generate(f"shop-tasks:table={table},count={COUNT},seed=4,languages=en"):
        made = problem.extra["made"]
        assert made["table"] == table.name and made["number"] == int(problem.id.split(":")[3])
        assert made["by"] == "shop-tasks" and {one["source"] for one in made["from"]} == {str(table)}
        assert [one["id"] for one in made["from"]] == made["rows"][:3]
        row = sold[int(made["rows"][0]) - 1]
        assert row["name"].casefold() in problem.prompt[0].content.casefold()
        assert json.loads(json.dumps(problem.extra)) == problem.extra


def test_rows_are_problems_and_conversations(table: Path) -> None:
    source = f"shop-tasks:table={table},count=30,seed=2,split=test-products"
    problems = load_problems(Problems(source=source, limit=20))
    assert problems == generate(source)[:20]
    assert load_conversations(source)[3][-1].content == problems[3].extra["solution"]
    again = replace(problems[0], extra={**problems[0].extra, "check": json.dumps(problems[0].extra["check"])})
    assert grade(again, again.answer).status == "correct"
