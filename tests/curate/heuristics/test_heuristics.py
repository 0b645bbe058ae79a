"""The step `heuristics` on texts of several kinds."""

from __future__ import annotations

from foresail.curate.document import Document, Drop
from foresail.curate.heuristics.step import Heuristics

PROSE = """The ferry left the harbour before the sun was up, and nobody on the quay looked after it for long.
It had carried mail to the islands since the war. On the way back it was mostly empty, apart from a few goats.
"We will stop when they build the bridge," the captain used to say, and they never built one."""


def test_prose_stays() -> None:
    outcome = Heuristics().open()(Document(id="a", text=PROSE))
    assert isinstance(outcome, Document) and outcome.metadata["text_kind"] == "prose"


def test_repeated_lines_go() -> None:
    outcome = Heuristics().open()(Document(id="a", text="\n".join([PROSE] * 4)))
    assert isinstance(outcome, Drop) and outcome.reason == "repeated_lines"
