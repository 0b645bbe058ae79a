"""Verdicts for the terminal: counts by status, and a verdict's text on one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from foresail.records import Status, Verdict


def tally(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """One line a status that occurs, "correct    1312  99.47 %", in the order of `Status`."""
    counts = Counter(verdict.status for verdict in verdicts)
    for status in get_args(Status):
        if counts[status]:
            yield f"  {status:<12}{counts[status]:>9,}{share(counts[status], counts.total()):>11}"


def share(part: int, whole: int) -> str:
    """share(1, 8) -> "12.50 %". Rounded down, so that 100 % means all of them."""
    return f"{part * 10_000 // whole / 100:.2f} %" if whole else "none"


def one_line(text: str) -> str:
    r"""What any terminal and file takes: no line breaks, and nothing that UTF-8 cannot hold.

    one_line("a\nb \ud800") -> "a b ?"; half a character may come out of a JSON file or of a cut response.
    """
    return " ".join(text.splitlines()).encode(errors="replace").decode()
