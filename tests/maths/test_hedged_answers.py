"""Statements that stand are accepted, hedges and withdrawals are not, in every composition of phrases.json."""

from collections.abc import Iterator

import hedged_answers
import pytest
from hedged_answers import PHRASES, Composed

from foresail.maths.verdict import grade

SEED = 17


def wrongly_accepted(composed: Iterator[Composed], *, also_the_second: bool = True) -> list[str]:
    return [
        f"{item.response!r} for {value}"
        for item in composed
        for value in (item.right, item.wrong)[: 1 + also_the_second]
        if grade(item.response, value).status == "correct"
    ]


def test_there_are_phrases_of_every_kind_in_every_language():
    kinds = {"states", "ends_on", "offers", "takes_back", "denies", "harmless"}
    assert len(PHRASES) >= 13
    assert all(kinds <= set(phrases) and all(phrases[kind] for kind in kinds) for phrases in PHRASES.values())


def test_a_statement_that_stands_is_accepted_in_any_language_and_typeface():
    rejected = []
    for item in hedged_answers.honest(SEED):
        verdict = grade(item.response, item.right, accept="stated" if item.stated else "any")
        if verdict.status != "correct" or grade(item.response, item.wrong).status == "correct":
            rejected.append(f"{item.response!r} for {item.right}: {verdict.detail}")
    assert not rejected, "\n".join(rejected[:20])


@pytest.mark.parametrize("kind", ["hedged", "restated", "taken_back", "denied"])
def test_what_is_hedged_or_taken_back_is_not_accepted(kind: str):
    accepted = wrongly_accepted(getattr(hedged_answers, kind)(SEED))
    assert not accepted, "\n".join(accepted[:20])


def test_what_a_correction_replaces_is_not_accepted():
    accepted = wrongly_accepted(hedged_answers.corrected(SEED), also_the_second=False)
    assert not accepted, "\n".join(accepted[:20])


@pytest.mark.parametrize("accept", ["boxed", "stated", "any"])
def test_a_box_that_was_taken_back_is_no_answer_at_any_level(accept):
    verdict = grade(r"So \boxed{19}. Wait, that is wrong.", "19", accept=accept)
    assert (verdict.status, verdict.score) == ("unparsable", 0.0)
