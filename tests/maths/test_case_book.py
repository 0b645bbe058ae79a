"""The case book: what a mathematician would say of answers as models write them, one JSON line per case.

A row is {"gold", "pred", "expected", "why"}; `"debatable": true` marks a matter of policy, which is graded
(nothing may raise) but not held against the verifier.
"""

import json
from pathlib import Path

import pytest

from foresail.maths.verdict import grade

CHAPTERS = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))


def rows(chapter: Path) -> list[dict]:
    return [json.loads(line) for line in chapter.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_every_case_gets_the_expected_verdict(chapter):
    misses = []
    for number, row in enumerate(rows(chapter), start=1):
        verdict = grade(row["pred"], row["gold"])
        if (verdict.status == "correct") != row["expected"] and not row.get("debatable"):
            misses.append(
                f"line {number}: {row['why']}: gold {row['gold']!r}, response {row['pred']!r}: "
                f"expected {row['expected']}, got {verdict.status} ({verdict.detail})"
            )
    assert not misses, f"{len(misses)} of {len(rows(chapter))} wrong:\n" + "\n".join(misses)


def test_the_book_is_large_and_holds_as_many_wrong_answers_as_right_ones():
    book = [row for chapter in CHAPTERS for row in rows(chapter)]
    assert len(book) >= 700
    assert len({(row["gold"], row["pred"]) for row in book}) == len(book)
    assert 0.4 < sum(row["expected"] for row in book) / len(book) < 0.6
