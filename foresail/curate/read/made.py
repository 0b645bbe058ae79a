"""Problems from a generator, as a source: path = "word-problems:count=5000,seed=1".

Pieces are runs of its problems. They hold problems, or conversations where each problem comes with its solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from foresail.curate.document import Document, Drop
from foresail.curate.read.piece import ReadPiece, Record, Source
from foresail.curate.rows.conversation import message_row
from foresail.curate.rows.problem import SOURCE
from foresail.curate.rows.row import read_row
from foresail.data.chats.conversations import to_imitate
from foresail.data.made.generators import generate
from foresail.records import Problem

PROBLEMS_AT_ONCE = 1000

made_problems = lru_cache(maxsize=2)(generate)  # pieces of one generator follow each other in a process


def cut_generator(source: Source, path: str) -> Iterator[ReadPiece]:
    count = len(made_problems(path))
    for start in range(0, count, PROBLEMS_AT_ONCE):
        yield ReadPiece(source, "made", "", (path,), start, min(start + PROBLEMS_AT_ONCE, count))


def made_records(piece: ReadPiece) -> Iterator[Record]:
    for problem in made_problems(piece.files[0])[piece.start : piece.stop]:
        yield partial(made_record, problem, piece.source)


def made_record(problem: Problem, source: Source) -> tuple[str, Document | Drop]:
    columns: dict[str, Any] = {**problem.extra, SOURCE: problem.source}
    if source.holds == "conversations":
        columns |= {"messages": [*map(message_row, to_imitate(problem))]}
    else:
        columns |= {"prompt": [*map(message_row, problem.prompt)], "answer": problem.answer}
    return problem.id, read_row(columns, problem.id, problem.source, source.holds)
