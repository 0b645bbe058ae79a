from __future__ import annotations

import random
from collections import defaultdict

import pytest
from deduplicate.repeats import cut, decide

from foresail.curate.deduplicate.repeated_lines import RepeatedLines, domain
from foresail.curate.deduplicate.units import comparable, units_of, without
from foresail.curate.document import Document, Drop

MENU = "Home | Products | About us | Contact"
NOTICE = "We use cookies to make this site better."


def page(number, text, host="a.org"):
    return Document(id=f"{host}:{number}", url=f"https://www.{host}/{number}", text=text)


def texts(outcomes):
    return [
        outcome.detail if isinstance(outcome, Drop) else outcome.text
        for piece in outcomes
        for outcome in piece
    ]


def test_a_line_that_many_pages_have_stays_in_the_first(tmp_path):
    pages = [page(n, f"{MENU}\n\nA story of its own, number {n}.\n\n{NOTICE}") for n in range(4)]
    pages.append(page(4, f" {MENU.upper()}\n{NOTICE}"))
    pages.append(page(5, f"{MENU}\n\nAnother site.", host="b.org"))
    outcomes, figures = decide(RepeatedLines(), tmp_path, cut(pages, 2, 0))
    story = "A story of its own, number {}."
    assert texts(outcomes) == [
        pages[0].text,
        *(f"{story.format(n)}\n" for n in (1, 2, 3)),
        "repeats a.org:0",
        pages[5].text,
    ]
    assert figures == {"documents": 6, "changed": 4, "lines": 25, "cut": 8}


def test_keep_none_cuts_everywhere_and_corpus_counts_all_sites(tmp_path):
    pages = [page(n, f"{MENU}\nStory {n} is a different one.", host=f"{n}.org") for n in range(3)]
    outcomes, _ = decide(RepeatedLines(), tmp_path / "1", [pages])
    assert texts(outcomes) == [own.text for own in pages]
    step = RepeatedLines(within="corpus", keep="none")
    outcomes, _ = decide(step, tmp_path / "2", [pages])
    assert texts(outcomes) == [f"Story {n} is a different one." for n in range(3)]


def test_lines_within_one_document_are_its_own(tmp_path):
    pages = [page(0, f"{NOTICE}\n" * 9), page(1, NOTICE), page(2, "Something else altogether, once.")]
    outcomes, _ = decide(RepeatedLines(), tmp_path, [pages])
    assert texts(outcomes) == [own.text for own in pages]


def test_paragraphs(tmp_path):
    pages = [page(n, f"First line of a notice,\nand its second.\n\nStory {n}.") for n in range(3)]
    outcomes, _ = decide(RepeatedLines(unit="paragraph"), tmp_path, [pages])
    assert texts(outcomes) == [pages[0].text, "Story 1.", "Story 2."]


def test_code_formulas_and_tables_stay_whole():
    text = (
        f"{NOTICE}\n```python\nimport numpy as np and others\n```\n$$\nx = y + a long formula\n$$\n| {MENU} |\n"
        + "-" * 40
    )
    lines = units_of(text, "line")
    assert [line for line, own in zip(lines, comparable(lines, 20), strict=True) if own] == [NOTICE]
    paragraphs = units_of(f"```\n{NOTICE}\n\n{NOTICE}\n```\n\n{NOTICE}", "paragraph")
    assert comparable(paragraphs, 20) == [False, False, True]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_is_what_plain_python_leaves(tmp_path, seed):
    dice = random.Random(seed)
    stock = [f"This is the line with the number {n}." for n in range(25)] + [
        "",
        "",
        "short",
        "| a | b | c | d | e |",
    ]
    pages = [
        page(n, "\n".join(dice.choices(stock, k=dice.randrange(8))), host=dice.choice("abc") + ".org")
        for n in range(60)
    ]
    step = RepeatedLines(
        keep=dice.choice(["first", "none"]), documents=dice.choice([2, 3, 5]), memory_gib=1e-6
    )
    outcomes, _ = decide(step, tmp_path, cut(pages, 20, 1))
    owners = defaultdict(list)
    for number, own in enumerate(pages):
        for line in own.text.split("\n"):
            if len(line) >= 20 and not line.startswith("|"):
                owners[domain(own.url), line].append(number)
    for number, (own, left) in enumerate(zip(pages, texts(outcomes), strict=True)):
        lines = own.text.split("\n")
        stands_in = [owners[domain(own.url), line] for line in lines]
        gone = [
            len(set(those)) >= step.documents and (step.keep == "none" or those[0] != number)
            for those in stands_in
        ]
        expected = without(lines, gone, "line")
        first = next((those[0] for those, is_gone in zip(stands_in, gone, strict=True) if is_gone), 0)
        assert left == (expected if expected.strip() or not any(gone) else f"repeats {pages[first].id}")
