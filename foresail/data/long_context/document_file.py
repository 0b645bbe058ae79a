"""A file of long-context documents, made on several cores: a source for `foresail data tokenize`.

write_documents(Path("needles.jsonl"), plan, tokenizer="checkpoints/small", count=5000, workers=8)
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foresail.data.long_context.documents import KINDS, DocumentMaker, DocumentPlan
from foresail.data.long_context.texts import open_filler
from foresail.runlog.atomic import write_atomically
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class DocumentJob:
    """The settings that every process needs: the plan, and where tokenizer and filler are."""

    plan: DocumentPlan
    tokenizer: str
    filler: str | None


def write_documents(
    out: Path,
    plan: DocumentPlan,
    *,
    tokenizer: str,
    count: int,
    filler: str | None = None,
    workers: int = 1,
) -> None:
    """`count` documents, a line {"text": …, "kind": …} each, the same for any number of workers."""
    plan.check()
    job = DocumentJob(plan=plan, tokenizer=tokenizer, filler=filler)
    out.parent.mkdir(parents=True, exist_ok=True)

    def write(partial_file: Path) -> None:
        with partial_file.open("w", encoding="utf-8") as file:
            for number, text in enumerate(make_all(job, count, workers)):
                row = {"text": text, "kind": plan.kinds[number % len(plan.kinds)]}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    write_atomically(out, write)


def make_all(job: DocumentJob, count: int, workers: int) -> Iterator[str]:
    if workers <= 1:
        maker = open_maker(job)
        yield from map(maker.make, range(count))
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=start_worker, initargs=(job,)) as pool:
        yield from pool.imap(make_one, range(count), chunksize=max(1, min(64, count // workers)))


def open_maker(job: DocumentJob) -> DocumentMaker:
    encode = Tokenizer.load(job.tokenizer).encode
    return DocumentMaker(plan=job.plan, encode=encode, filler=open_filler(job.filler))


opened: list[DocumentMaker] = []  # by a worker process, once


def start_worker(job: DocumentJob) -> None:
    opened.append(open_maker(job))


def make_one(index: int) -> str:
    return opened[0].make(index)


def kinds_of(text: str) -> tuple[str, ...]:
    """kinds_of("drill, vt") -> ("drill", "vt"); "all" is all of them."""
    names = tuple(part.strip() for part in text.split(","))
    return KINDS if names == ("all",) else names
