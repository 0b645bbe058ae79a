"""Main content of pages: word F1 and speed, beside trafilatura, rs-trafilatura and resiliparse.

python benchmarks/curate/extraction.py                                   # ours; needs ../shared/data/html/wcxb_dev
python benchmarks/curate/extraction.py --peer-python PYTHON              # and the rivals that PYTHON has
python benchmarks/curate/extraction.py --worst 20                        # and the pages where ours is worst

The score is that of the Web Content Extraction Benchmark: both texts in lower case, cut into runs of word
characters (\\w+), counted as multisets; F1 a page, and the mean of pages. Rivals run in `extraction_peer.py`, one
process each, on the same pages in the same order. Seconds are CPU seconds from a page's HTML to its text, parsing
included, after two pages to warm up.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from foresail.curate.extract.main_text import main_text
from foresail.curate.extract.render.rendering import Rendering

DATA = Path(__file__).parents[3] / "shared/data/html/wcxb_dev/pages.jsonl.xz"
PEER = Path(__file__).with_name("extraction_peer.py")
WORD = re.compile(r"\w+")


def word_scores(text: str, gold: str) -> tuple[float, float, float]:
    """Precision, recall, F1. word_scores("a b", "A c") -> (.5, .5, .5)"""
    got, wanted = Counter(WORD.findall(text.lower())), Counter(WORD.findall(gold.lower()))
    if not got or not wanted:
        both_empty = float(not got and not wanted)
        return both_empty, both_empty, both_empty
    right = (got & wanted).total()
    precision, recall = right / got.total(), right / wanted.total()
    return precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0


def run_ours(pages: list[dict[str, Any]], markup: bool) -> dict[str, Any]:
    rendering = Rendering(markup=markup)
    for page in pages[:2]:
        main_text(page["html"], page["url"], rendering)
    texts, types = [], []
    began = time.process_time()
    for page in pages:
        text, page_type = main_text(page["html"], page["url"], rendering)
        texts.append(text)
        types.append(page_type)
    return {"seconds": time.process_time() - began, "texts": texts, "types": types}


def run_peers(pages: list[dict[str, Any]], pythons: list[str]) -> dict[str, Any]:
    runs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "pages.json"
        inputs.write_text(json.dumps([{"html": page["html"], "url": page["url"]} for page in pages]))
        for python in pythons:
            listed = subprocess.run([python, str(PEER)], check=True, stdout=subprocess.PIPE, text=True)
            for name in json.loads(listed.stdout):
                output = Path(folder) / "texts.json"
                subprocess.run([python, str(PEER), name, str(inputs), str(output)], check=True)
                runs.setdefault(name, json.loads(output.read_text()))
    return runs


def figures(pages: list[dict[str, Any]], run: dict[str, Any]) -> dict[str, Any]:
    by_type: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for page, text in zip(pages, run["texts"], strict=True):
        scores = word_scores(text, page["gold"])
        by_type["all"].append(scores)
        by_type[page["type"]].append(scores)

    def mean(name: str, column: int) -> float:
        return round(sum(scores[column] for scores in by_type[name]) / len(by_type[name]), 4)

    result = {
        "F1": {name: mean(name, 2) for name in sorted(by_type, key=lambda name: (name != "all", name))},
        "precision": mean("all", 0),
        "recall": mean("all", 1),
        "CPU seconds": round(run["seconds"], 2),
        "pages per CPU-second": round(len(pages) / run["seconds"], 1),
    }
    if "types" in run:
        same = sum(page["type"] == found for page, found in zip(pages, run["types"], strict=True))
        result["types right"] = round(same / len(pages), 4)
    return result


def print_worst(pages: list[dict[str, Any]], texts: list[str], count: int) -> None:
    rows = [(word_scores(text, page["gold"]), page) for page, text in zip(pages, texts, strict=True)]
    for (precision, recall, f1), page in sorted(rows, key=lambda row: row[0][2])[:count]:
        print(f"{f1:.3f} P {precision:.3f} R {recall:.3f} {page['type']:13} {page['id']} {page['url'][:90]}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="JSONL (xz): id, url, type, gold, html")
    parser.add_argument(
        "--peer-python", action="append", default=[], help="an interpreter with rivals; may be repeated"
    )
    parser.add_argument("--worst", type=int, default=0, help="print that many of our worst pages")
    arguments = parser.parse_args()
    with lzma.open(arguments.data, "rt") as file:
        pages = [json.loads(line) for line in file]
    runs = {
        "ours": run_ours(pages, markup=False),
        "ours, Markdown": run_ours(pages, markup=True),
        **run_peers(pages, arguments.peer_python),
    }
    print_worst(pages, runs["ours"]["texts"], arguments.worst)
    result = {"pages": len(pages), **{name: figures(pages, run) for name, run in runs.items()}}
    if "trafilatura" in runs:
        ratio = runs["trafilatura"]["seconds"] / runs["ours"]["seconds"]
        result["speed, trafilatura = 1"] = round(ratio, 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
