"""Time, memory and disk of the step `minhash` as documents grow, drawn; and what 10 billion of them would take.

Documents are made from real sentences, 200 words each, a fifth of them copies. A process of its own reads them and
runs the step's three functions as a curation does, piece by piece, with so little memory for sorting that a million
documents go by the disk. `pipeline` runs `foresail data curate` on them: reading, ledgers and writing in addition.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from deduplication_texts import made_texts

from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.document import Document, Drop

MEASURED = Path(__file__).parents[1] / "measured/deduplication_growth.json"
MEMORY_GIB = 0.01  # for sorting: 168 thousand keys
A_PIECE = 10_000  # documents
SECONDS = 0.2  # between two looks at a process
STEP = "import sys; from deduplication_growth import run_step; run_step(sys.argv[1])"


def measure_growth(data: Path, out: Path, sizes: Sequence[int]) -> None:
    """Adds to what was measured before, so that sizes can be run one by one."""
    for size in sizes:
        figures = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
        figures[str(size)] = measure_step(data, out, size)
        MEASURED.write_text(json.dumps(figures, indent=1) + "\n")
        print(json.dumps({size: figures[str(size)]}), flush=True)


def measure_step(data: Path, out: Path, size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=out) as place:
        folder = Path(place)
        written = write_documents(data, folder / "in", size)
        (folder / "work").mkdir()
        command = [sys.executable, "-c", STEP, str(folder)]
        paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
        with Watch(process.pid, folder / "work") as watch:
            if process.wait():
                raise SystemExit(f"the step failed on {size} documents")
        return json.loads((folder / "figures.json").read_text()) | {
            "date": date.today().isoformat(),
            "machine": machine(),
            "text_bytes": written,
            "memory_mib": round(watch.memory / 2**20, 1),
            "disk_peak": watch.disk,
        }


def write_documents(data: Path, folder: Path, size: int) -> int:
    """Bytes of text."""
    folder.mkdir(parents=True)
    texts = made_texts(data, size, seed=1)
    written = 0
    for number in range(math.ceil(size / A_PIECE)):
        with (folder / f"{number:05}.jsonl").open("w", encoding="utf-8") as file:
            for text in islice(texts, min(A_PIECE, size - number * A_PIECE)):
                written += len(text.encode())
                file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    return written


def run_step(place: str) -> None:
    """In the process that is watched: what `curate/run/corpus_step.py` and the phase after it do."""
    folder = Path(place)
    work, pieces = folder / "work", sorted((folder / "in").iterdir())
    step = Minhash(memory_gib=MEMORY_GIB)
    step.signatures(["loads the compiled kernel"])
    features = [work / f"{piece.stem}.features" for piece in pieces]
    decisions = [work / f"{piece.stem}.decisions" for piece in pieces]
    begin = time.process_time()
    for piece, file in zip(pieces, features, strict=True):
        step.collect(read_documents(piece), file)
    collected = time.process_time()
    (work / "scratch").mkdir()
    figures = step.decide(features, decisions, work / "scratch")
    decided = time.process_time()
    dropped = documents = 0
    for piece, file in zip(pieces, decisions, strict=True):
        apply = step.open(file)
        for number, document in enumerate(read_documents(piece)):
            dropped += isinstance(apply(number, document), Drop)
            documents += 1
    assert dropped == figures["removed"]
    result = {
        "documents": documents,
        "cpu_collect": round(collected - begin, 2),
        "cpu_decide": round(decided - collected, 2),
        "cpu_apply": round(time.process_time() - decided, 2),
        "features": sum(file.stat().st_size for file in features),
        "decisions": sum(file.stat().st_size for file in decisions),
        "step": figures,
    }
    (folder / "figures.json").write_text(json.dumps(result))


def read_documents(piece: Path) -> Iterator[Document]:
    with piece.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            yield Document(id=f"{piece.name}:{number}", text=json.loads(line)["text"])


def measure_pipeline(data: Path, out: Path, size: int) -> dict[str, Any]:
    """CPU seconds of a whole curation with this one step, by its own report."""
    with tempfile.TemporaryDirectory(dir=out) as place:
        folder = Path(place)
        write_documents(data, folder / "in", size)
        recipe = folder / "recipe.toml"
        recipe.write_text(
            f'out = "{folder}/out"\n[[source]]\npath = "{folder}/in"\n[[step]]\nname = "minhash"\n'
            "[cluster]\nworkers = 1\n"
        )
        command = [sys.executable, "-m", "foresail", "data", "curate", str(recipe)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"the curation of {size} documents failed")
        summary = json.loads((folder / "out/summary.json").read_text())
        return {
            "documents": size,
            "dropped": summary["dropped"],
            "cpu_step": summary["work"]["1 minhash"]["cpu_seconds"],
            "cpu_all": round(usage.ru_utime + usage.ru_stime, 2),
        }


def machine() -> str:
    return f"{os.cpu_count()} cores in a virtual machine"


@dataclass
class Watch:
    """Looks at a process and its children until it ends: memory that is no file, and the size of a folder."""

    process: int
    folder: Path
    memory: int = 0
    disk: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self.thread = threading.Thread(target=self.look_on)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def look_on(self) -> None:
        while not self.ended.wait(SECONDS):
            self.memory = max(self.memory, sum(map(anonymous, descendants(self.process))))
            self.disk = max(self.disk, sum(map(blocks, self.folder.rglob("*"))))


def descendants(number: int) -> Iterator[int]:
    yield number
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from descendants(int(child))


def anonymous(number: int) -> int:
    """Bytes of memory that are not pages of files, which the system can let go of."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def blocks(file: Path) -> int:
    try:
        return file.stat().st_blocks * 512
    except OSError:
        return 0
