"""Rows of shop-tasks: are the answers right, are rows doubled, do the splits meet, what language are they in?

    python benchmarks/curate/shop_tasks.py ../shared/data/ecommerce/tau2_retail/db.json.xz [--count 10000]

Every answer is worked out again by `shop_solver.py` from the question's text. What a question shows of an offer is
compared with the raw table, by the ids that the row gives. JSON comes last.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import Any

from shop_solver import Listed, Solved, Solver, Tongue

from foresail.curate.language.step import open_model
from foresail.data.made.generators import generate
from foresail.records import Problem

FILES = Path(__file__).parents[2] / "foresail/data/made/shop"
SPLITS = ("train", "test", "test-products", "test-templates")
SHINGLE, NEAR = 5, (0.8, 0.9)
MARGIN = 0.1  # the default of the step `language`


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path, help="db.json.xz of tau2-bench's retail domain")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    source = f"shop-tasks:table={arguments.table},seed={arguments.seed},count={arguments.count}"
    start = process_time()
    rows = generate(source)[:]
    seconds = process_time() - start
    figures = {
        "rows": len(rows),
        "cpu_seconds_to_make": round(seconds, 1),
        "rows_per_cpu_second": round(len(rows) / seconds),
        "answers": check_answers(rows, arguments.table),
        "answers_of_the_test_split": check_answers(generate(f"{source},split=test")[:], arguments.table),
        "by_task_and_language": by_task_and_language(rows),
        "duplicates": duplicates(rows),
        "splits": splits(f"{source},split="),
        "language": languages(rows),
    }
    print(json.dumps(figures, indent=1, ensure_ascii=False))


def check_answers(rows: Sequence[Problem], table: Path) -> dict[str, Any]:
    start, solver, raw = process_time(), Solver(FILES, table), RawTable(table)
    agree: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    offers, wrong = 0, []
    for row in rows:
        made = row.extra["made"]
        solved = solver.solve(row.prompt[0].content)
        same = [(made["task"], made["form"], made["language"])] == [
            (s.task, s.form, s.language) for s in solved
        ]
        same = same and agrees(row, solved[0], solver.tongues[made["language"]], raw)
        basis = solved[0].basis if solved else "none"
        agree[basis] += same
        forms[basis][f"{made['task']}.{made['form']}"] += 1
        offers += sum(len(one.offers) for one in solved)
        if not same:
            wrong.append(row.id)
    return {
        "agree": sum(agree.values()),
        "of": len(rows),
        "by_basis": {basis: {"agree": agree[basis], "of": sum(of.values())} for basis, of in forms.items()},
        "forms_by_basis": {basis: sorted(of) for basis, of in forms.items()},
        "offers_as_in_the_raw_table": offers,
        "wrong": wrong[:10],
        "cpu_seconds": round(process_time() - start, 1),
    }


class RawTable:
    """tau2's variants by their ids."""

    def __init__(self, table: Path) -> None:
        with lzma.open(table) as file:
            products = json.load(file)["products"].values()
        self.variants = {id: (one["name"], v) for one in products for id, v in one["variants"].items()}
        self.by_name = {one["name"]: list(one["variants"].values()) for one in products}

    def has(self, offer: Listed, ids: Sequence[str], tongue: Tongue) -> bool:
        """Whether an offer is one of the rows, in all that is shown of it."""
        return any(
            offer.name == name
            and offer.facts == dict(tongue.translated(*option) for option in variant["options"].items())
            and offer.price in (None, Decimal(str(variant["price"])))
            and offer.in_stock in (None, variant["available"])
            for name, variant in map(self.variants.__getitem__, ids)
        )

    def values(self, product: str, attributes: set[str], tongue: Tongue) -> set[str]:
        options = [option for variant in self.by_name[product] for option in variant["options"].items()]
        return {value for name, value in (tongue.translated(*one) for one in options) if name in attributes}


def agrees(row: Problem, solved: Solved, tongue: Tongue, raw: RawTable) -> bool:
    """Answer, check and facts of a row."""
    check, answer = row.extra["check"], solved.answer
    if not all(raw.has(offer, row.extra["made"]["rows"], tongue) for offer in solved.offers):
        return False
    match check["kind"]:
        case "number":
            return Fraction(tongue.amount(row.answer)) == answer
        case "list":
            return {*tongue.pieces(row.answer)} == answer == {*check["items"]}
        case "json":
            return bool(json.loads(row.answer, parse_float=Decimal) == answer)
        case "constraints":
            return constraints_agree(row, answer, tongue, raw)
        case "choice":
            return row.answer == answer
        case _:
            return row.answer == answer == check["accept"][0]


def constraints_agree(row: Problem, answer: dict[str, Any], tongue: Tongue, raw: RawTable) -> bool:
    """The check says what the question asks, the terms it forbids are of the raw table, and the answer meets it."""
    check, text = row.extra["check"], row.answer.casefold()
    limit = check["max_words"] if tongue.words["spaces"] else check["max_chars"]
    length = len(text.split()) if tongue.words["spaces"] else len(text)
    asked = row.extra["made"]["asked"]
    name = next(one for one in answer["contains"] if one in raw.by_name)
    known = raw.values(name, {*asked.get("attributes", asked.get("options", {}))}, tongue)
    return (
        check["contains"] == answer["contains"]
        and {*answer["excludes"]} <= {*check["excludes"]} <= known - {*answer["contains"]}
        and limit == answer["limit"] >= length
        and all(term.casefold() in text for term in check["contains"])
        and not any(stands_in(term.casefold(), text, tongue) for term in check["excludes"])
    )


def stands_in(term: str, text: str, tongue: Tongue) -> bool:
    if not tongue.words["spaces"]:
        return term in text
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None


def by_task_and_language(rows: Sequence[Problem]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.extra["made"]["task"]][row.extra["made"]["language"]] += 1
    return {task: dict(sorted(of.items())) for task, of in sorted(counts.items())}


def duplicates(rows: Sequence[Problem]) -> dict[str, Any]:
    """Equal questions, and pairs within a task and language by Jaccard of 5-character shingles, every pair."""
    cells: dict[tuple[str, str], list[set[str]]] = defaultdict(list)
    for row in rows:
        text = row.prompt[0].content
        made = row.extra["made"]
        shingles = {text[at : at + SHINGLE] for at in range(len(text) - SHINGLE + 1)}
        cells[made["task"], made["language"]].append(shingles)
    near: Counter[float] = Counter()
    in_pair: dict[float, int] = dict.fromkeys(NEAR, 0)
    for texts in cells.values():
        paired: dict[float, set[int]] = {least: set() for least in NEAR}
        for (one, first), (other, second) in combinations(enumerate(texts), 2):
            common = len(first & second)
            for least in NEAR:
                if common >= least * (len(first) + len(second) - common):
                    near[least] += 1
                    paired[least] |= {one, other}
        for least in NEAR:
            in_pair[least] += len(paired[least])
    return {
        "equal": len(rows) - len({row.prompt[0].content for row in rows}),
        "pairs_from_jaccard": {str(least): near[least] for least in NEAR},
        "rows_in_such_pairs": {str(least): in_pair[least] for least in NEAR},
    }


def splits(source: str) -> dict[str, Any]:
    """What the splits of equally many rows have in common with train: should be nothing where they say so."""
    start = process_time()
    rows = {split: generate(f"{source}{split}")[:] for split in SPLITS}
    products = {split: {id for row in rows[split] for id in row.extra["made"]["rows"]} for split in SPLITS}
    templates = {split: {row.extra["made"]["template"] for row in rows[split]} for split in SPLITS}
    questions = {split: {row.prompt[0].content for row in rows[split]} for split in SPLITS}
    return {
        split: {
            "variants": len(products[split]),
            "variants_of_train": len(products[split] & products["train"]),
            "templates_of_train": len(templates[split] & templates["train"]),
            "questions_of_train": len(questions[split] & questions["train"]),
        }
        for split in SPLITS[1:]
    } | {"cpu_seconds": round(process_time() - start, 1)}


def languages(rows: Sequence[Problem]) -> dict[str, Any]:
    """Share of questions that the step `language` names rightly; for id and ms also together."""
    model = open_model("")
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        said[row.extra["made"]["language"]][model.guess(row.prompt[0].content).language(MARGIN)] += 1
    malay = ("id", "ms")
    return {
        code: {
            "right": round(of[code] / of.total(), 4),
            **({"id_or_ms": round(sum(of[one] for one in malay) / of.total(), 4)} if code in malay else {}),
            "said": dict(of.most_common(5)),
        }
        for code, of in sorted(said.items())
    }


if __name__ == "__main__":
    main()
