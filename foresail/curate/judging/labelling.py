"""Labels documents by rubrics through a judge; stopped or killed, the same call goes on after the last document.

    label_documents(source, out, JudgeSettings(answerer=…, rubrics=("education",), share=0.01))

    out/labels.jsonl         {"id": "web:17", "text": "…", "labels": {"education": 3}}, in the order of the sources
                             {"id": "web:18", "text": "…", "labels": {}, "failed": "no_json", "detail": "…"}
    out/judge.answers.jsonl  what the model said: nothing is asked twice
    out/plan.json            what it was begun with

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

from foresail.curate.asking.asking import Asking
from foresail.curate.asking.cache import AnswerCache
from foresail.curate.document import Document
from foresail.curate.judging.step import rate_documents
from foresail.curate.quality.text_windows import windows
from foresail.curate.read.source import Source, list_pieces, read_documents
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.judge import JudgeForm
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import Texts
from foresail.rewards.judging.judge import Judge, Rating, Unjudged
from foresail.rewards.judging.rubric import Rubric, load_rubrics
from foresail.runlog.atomic import explained, write_text
from foresail.runlog.lock import lock_folder

LABELS, PLAN, CACHE = "labels.jsonl", "plan.json", "judge"
Row = dict[str, Any]


class JudgeSettings(Part):
    answerer: Answerer = Field(description="who judges; another model needs another folder")
    rubrics: Texts = Field(("fluency", "education", "reasoning", "domain"), description="names or files")
    form: JudgeForm = JudgeForm(max_chars=6000)
    share: float = Field(1.0, gt=0, le=1, description="of the documents, drawn by their ids")
    most: int | None = Field(None, gt=0, description="documents at most")
    seed: int = Field(0, ge=0)
    batch: int = Field(64, ge=1, description="documents asked about before their rows are written")


def label_documents(
    source: Source,
    out: Path,
    settings: JudgeSettings,
    note: Callable[[Counter[str]], None] = lambda counts: None,
) -> Counter[str]:
    """How many documents were "judged", and how many failed by reason."""
    rubrics = load_rubrics(settings.rubrics)
    cache = AnswerCache(out)
    with explained(out), lock_folder(out):
        check_plan(out, plan_of(source, settings, rubrics))
        counts = continue_labels(out / LABELS)
        cache.open_piece(CACHE)
        judging = Judge(settings.form, Asking(settings.answerer, cache))
        waiting = islice(chosen(source, settings), sum(counts.values()), settings.most)
        with (out / LABELS).open("ab") as file:
            while batch := list(islice(waiting, settings.batch)):
                ratings = rate_documents(batch, judging, rubrics)
                rows = [*map(label_row, batch, ratings, [settings.form.max_chars] * len(batch))]
                file.write(b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in rows))
                file.flush()
                counts.update(str(row.get("failed", "judged")) for row in rows)
                note(counts)
        cache.close()
    return counts


def label_row(document: Document, rating: Rating | Unjudged, max_chars: int) -> Row:
    row: Row = {"id": document.id, "text": windows(document.text, max_chars), "labels": {}}
    if isinstance(rating, Rating):
        return row | {"labels": rating.labels}
    said = {"answer": rating.answer} if rating.answer else {}
    return row | {"failed": rating.reason, "detail": rating.detail, **said}


def chosen(source: Source, settings: JudgeSettings) -> Iterator[Document]:
    for piece in list_pieces(source):
        for _, read in read_documents(piece):
            if isinstance(read, Document) and read.text.strip() and is_drawn(read.id, settings):
                yield read


def is_drawn(name: str, settings: JudgeSettings) -> bool:
    digest = hashlib.blake2b(f"{settings.seed}:{name}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < settings.share * 2**64


# Going on.


def plan_of(source: Source, settings: JudgeSettings, rubrics: Sequence[Rubric]) -> dict[str, Any]:
    return {
        "source": source.model_dump(mode="json"),
        "rubrics": [rubric.model_dump(mode="json") for rubric in rubrics],
        "model": settings.answerer.answers_by(),
        **settings.model_dump(mode="json", include={"form", "share", "seed"}),
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
