"""Judges documents by rubrics through a model; stopped or killed, the same call goes on after the last document.

    judge(source, out, answer=endpoint.answer, settings=JudgeSettings(rubrics=("education",), share=0.01))

    out/labels.jsonl   {"id": "web:17", "text": "…", "labels": {"education": 3}}, in the order of the sources
                       {"id": "web:18", "text": "…", "labels": {}, "failed": "no_json", "detail": "…"}
    out/plan.json      what it was begun with

`foresail data train-classifier out/labels.jsonl …` learns from it; rows without labels teach nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from foresail.chat.endpoint import Refused
from foresail.curate.document import Document
from foresail.curate.judging.questions import Unreadable, ask_about, read_answer
from foresail.curate.judging.rubric import Rubric, load_rubric
from foresail.curate.quality.text_windows import windows
from foresail.curate.read.source import Source, list_pieces, read_documents
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import Texts
from foresail.records import Message
from foresail.runlog.atomic import explained, write_text
from foresail.runlog.lock import lock_folder

LABELS, PLAN = "labels.jsonl", "plan.json"
Answer = Callable[[Sequence[Sequence[Message]]], Sequence[str | Refused]]
Row = dict[str, Any]


class JudgeSettings(Part):
    rubrics: Texts = Field(("fluency", "education", "reasoning", "domain"), description="names or files")
    model: str = Field("", description="who judges; another model needs another folder")
    share: float = Field(1.0, gt=0, le=1, description="of the documents, drawn by their ids")
    most: int | None = Field(None, gt=0, description="documents at most")
    seed: int = Field(0, ge=0)
    max_chars: int = Field(6000, ge=100, description="shown of a document, from four places of a longer one")
    batch: int = Field(64, ge=1, description="documents asked about before their rows are written")


def judge(
    source: Source,
    out: Path,
    *,
    answer: Answer,
    settings: JudgeSettings,
    note: Callable[[Counter[str]], None] = lambda counts: None,
) -> Counter[str]:
    """How many documents were "judged", and how many failed by reason."""
    rubrics = [load_rubric(name) for name in settings.rubrics]
    if len({rubric.name for rubric in rubrics}) != len(rubrics):
        raise ValueError("two rubrics have the same name; rename the file of one")
    with explained(out), lock_folder(out):
        check_plan(out, plan_of(source, settings, rubrics))
        counts = continue_labels(out / LABELS)
        waiting = islice(chosen(source, settings), sum(counts.values()), settings.most)
        with (out / LABELS).open("ab") as file:
            while batch := list(islice(waiting, settings.batch)):
                rows = judge_batch(batch, rubrics, answer, settings.max_chars)
                file.write(b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in rows))
                file.flush()
                counts.update(str(row.get("failed", "judged")) for row in rows)
                note(counts)
    return counts


def chosen(source: Source, settings: JudgeSettings) -> Iterator[Document]:
    for piece in list_pieces(source):
        for _, read in read_documents(piece):
            if isinstance(read, Document) and read.text.strip() and is_drawn(read.id, settings):
                yield read


def is_drawn(name: str, settings: JudgeSettings) -> bool:
    digest = hashlib.blake2b(f"{settings.seed}:{name}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < settings.share * 2**64


def judge_batch(
    documents: Sequence[Document], rubrics: Sequence[Rubric], answer: Answer, max_chars: int
) -> list[Row]:
    texts = [windows(document.text, max_chars) for document in documents]
    answers = answer([ask_about(text, rubrics) for text in texts])
    rows = []
    for document, text, answered in zip(documents, texts, answers, strict=True):
        row: Row = {"id": document.id, "text": text, "labels": {}}
        if isinstance(answered, Refused):
            row |= {"failed": "refused", "detail": answered.detail[:300]}
        else:
            try:
                row["labels"] = read_answer(answered, rubrics)
            except Unreadable as error:
                row |= {"failed": error.reason, "detail": str(error), "answer": answered[:1000]}
        rows.append(row)
    return rows


# Going on.


def plan_of(source: Source, settings: JudgeSettings, rubrics: Sequence[Rubric]) -> dict[str, Any]:
    rows = settings.model_dump(exclude={"rubrics", "batch", "most"})
    return {
        "source": source.model_dump(mode="json"),
        "rubrics": [rubric.model_dump(mode="json") for rubric in rubrics],
        **rows,
    }


def check_plan(out: Path, plan: dict[str, Any]) -> None:
    file = out / PLAN
    if not file.exists():
        write_text(file, json.dumps(plan, indent=1) + "\n")
    else:
        before, plan = json.loads(file.read_text(encoding="utf-8")), json.loads(json.dumps(plan))
        if changed := [key for key in plan if before.get(key) != plan[key]]:
            raise ValueError(
                f"{out} was begun with another {changed[0]}; choose another folder, or remove this one"
            )


def continue_labels(file: Path) -> Counter[str]:
    """What is there, by outcome; a line that a kill has torn is removed."""
    counts: Counter[str] = Counter()
    if not file.exists():
        return counts
    whole = 0
    with file.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            counts[str(json.loads(line).get("failed", "judged"))] += 1
            whole += len(line)
    with file.open("rb+") as opened:
        opened.truncate(whole)
    return counts


def describe_counts(counts: Counter[str]) -> str:
    """ "310 judged, failed: no_json 4, refused 1"."""
    failed = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(counts.items()) if reason != "judged"
    )
    return f"{counts['judged']:,} judged" + (f", failed: {failed}" if failed else "")
