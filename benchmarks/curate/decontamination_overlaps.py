"""Training sets of which the step `decontaminate` drops rows against test sets: how many, and which, to be read.

    python benchmarks/curate/decontamination_overlaps.py --peer-python PYTHON      # numbers, beside datatrove
    python benchmarks/curate/decontamination_overlaps.py --list "GSM8K train" --renamed numbers    # rows to read
    python benchmarks/curate/decontamination_overlaps.py --list "MATH train" --read 50             # drawn by a seed

13 words, as for problems. `--readings FILE` adds the verdicts of a reader by their ids, and counts them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from decontamination import DATA, ask_peer, read_jsonl, settings

from foresail.curate.decontaminate.benchmark import Benchmark, read_benchmark
from foresail.curate.document import Document

READINGS = Path(__file__).parents[1] / "measured/decontamination_readings.json"


class Pair(NamedTuple):
    """`columns` of the training set, and of the test set (none: the question)."""

    train: str
    columns: tuple[str, ...]
    test: str
    test_columns: tuple[str, ...] = ()


PAIRS = {
    "GSM8K train, GSM8K test": Pair("math/gsm8k/train", ("question",), "math/gsm8k/test"),
    "GSM8K train with solutions, GSM8K test with solutions": Pair(
        "math/gsm8k/train", ("question", "answer"), "math/gsm8k/test", ("question", "answer")
    ),
    "MATH train, MATH500": Pair("math/MATH/train7500", ("problem",), "math/math500/test"),
    "MATH train, OlympiadBench": Pair(
        "math/MATH/train7500", ("problem",), "math/eval_qwen25math/olympiadbench"
    ),
    "DeepScaleR, OlympiadBench": Pair(
        "math/deepscaler_sub1209/train", ("problem",), "math/eval_qwen25math/olympiadbench"
    ),
    "DeepMath, OlympiadBench": Pair(
        "math/deepmath_5k/train", ("problem",), "math/eval_qwen25math/olympiadbench"
    ),
    "DeepScaleR, MATH500": Pair("math/deepscaler_sub1209/train", ("problem",), "math/math500/test"),
    "MBPP, HumanEval": Pair("code/mbpp/mbpp", ("text",), "code/humaneval/HumanEval"),
    "MBPP with solutions, HumanEval with solutions": Pair(
        "code/mbpp/mbpp", ("text", "code"), "code/humaneval/HumanEval", ("prompt", "canonical_solution")
    ),
    "MBPP, MBPP+": Pair("code/mbpp/mbpp", ("text",), "code/mbppplus/MbppPlus"),
}


class Hit(NamedTuple):
    document: Document
    place: str
    share: float
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peer-python", help="an interpreter with datatrove")
    parser.add_argument("--list", help="list the hits of the first pair whose name begins so, and stop")
    parser.add_argument("--renamed", choices=["no", "names", "numbers"], default="no")
    parser.add_argument("--read", type=int, default=10**6, help="hits that are drawn for the list")
    parser.add_argument("--readings", type=Path, default=READINGS)
    options = parser.parse_args()
    if options.list:
        show(options)
        return
    figures = {}
    for name, pair in PAIRS.items():
        for renaming in ("no", "names", "numbers"):
            key = f"{name}, renamed = {renaming}"
            figures[key] = {**count(pair, options, renaming), **verdicts(options.readings, key)}
            print(key, json.dumps(figures[key]), flush=True)
    print(json.dumps(figures))


def against(pair: Pair, data: Path) -> list[Benchmark]:
    return [Benchmark(path=str(data / f"{pair.test}.jsonl.gz"), columns=pair.test_columns)]


def documents(pair: Pair, data: Path) -> Iterator[Document]:
    for number, row in enumerate(read_jsonl(data / f"{pair.train}.jsonl.gz"), 1):
        yield Document(id=str(number), text="\n".join(row[column] for column in pair.columns))


def hits(pair: Pair, data: Path, renaming: str) -> list[Hit]:
    search = settings(against(pair, data), renamed=renaming).open_search()
    return [
        Hit(document, leak.place, leak.share, leak.text)
        for document in documents(pair, data)
        for leak in search(document)
    ]


def count(pair: Pair, options: argparse.Namespace, renaming: str) -> dict[str, Any]:
    all_hits = hits(pair, options.data, renaming)
    shares = {hit.document.id: hit.share for hit in sorted(all_hits, key=lambda hit: hit.share)}
    counts: dict[str, Any] = {
        "documents": sum(1 for _ in documents(pair, options.data)),
        "dropped": len(shares),
        "with half of a row or more": sum(share >= 0.5 for share in shares.values()),
        "rows": len({hit.place for hit in all_hits}),
    }
    if options.peer_python and renaming == "no":
        own = [*documents(pair, options.data)]
        reply = ask_peer(options.peer_python, "eng", against(pair, options.data), [one.text for one in own])
        dropped = {one.id for one, gone in zip(own, reply["dropped"], strict=True) if gone}
        counts |= {"datatrove": len(dropped), "ours alone": len({*shares} - dropped)}
        counts["datatrove alone"] = len(dropped - {*shares})
    return counts


def verdicts(file: Path, key: str) -> dict[str, Any]:
    readings = json.loads(file.read_text())["readings"].get(key, {}) if file.is_file() else {}
    return {"read": dict(Counter(readings.values()))} if readings else {}


def drawn(all_hits: Sequence[Hit], size: int) -> list[Hit]:
    """One hit of a document, the one with the largest share."""
    best = {hit.document.id: hit for hit in sorted(all_hits, key=lambda hit: hit.share)}
    ordered = sorted(best.values(), key=lambda hit: int(hit.document.id))
    return random.Random(0).sample(ordered, size) if size < len(ordered) else ordered


def show(options: argparse.Namespace) -> None:
    pair = next((pair for name, pair in PAIRS.items() if name.startswith(options.list)), None)
    if pair is None:
        raise SystemExit(f"--list {options.list}: the pairs are {'; '.join(PAIRS)}")
    rows = {row.place: "\n".join(row.texts) for row in read_benchmark(*against(pair, options.data))}
    for hit in drawn(hits(pair, options.data, options.renamed), options.read):
        print(f"\n{hit.document.id}={hit.place}, share {hit.share:.2f}: {hit.text}")
        print(f"  train: {hit.document.text}\n  test:  {rows[hit.place]}")


if __name__ == "__main__":
    main()
