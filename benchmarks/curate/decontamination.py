"""The step `decontaminate`: recall of planted leaks by kind, false alarms, known overlaps, speed; beside datatrove.

    python benchmarks/curate/decontamination.py --peer-python PYTHON   # has datatrove; else ours alone
    python benchmarks/curate/decontamination.py --list                 # GSM8K's train against its test

Planted: rows of benchmarks in eight languages, changed in one way, between paragraphs of real texts of their
language; "messages" splits them over turns of a real conversation. The rival is datatrove: its n-gram filter with
13 words, an index of the same questions, and its tokenizer of the language. Clean: texts without benchmarks.
Overlaps: training sets of mathematics in which rows of test sets are known to be. Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from leak_kinds import KINDS, Change, names_of, renamed, renumbered

from foresail.curate.decontaminate.benchmark import Benchmark, read_benchmark
from foresail.curate.decontaminate.step import Decontaminate
from foresail.curate.document import Document
from foresail.curate.rows.row import read_row, with_row

DATA = Path(__file__).parents[3] / "shared/data"
PEER = Path(__file__).with_name("decontamination_peer.py")
N = 13
SOURCES = {  # by language; the peer's name of it
    "en": (
        "eng",
        ["math/gsm8k/test.jsonl.gz", "math/math500/test.jsonl.gz", "code/humaneval/HumanEval.jsonl.gz"],
    ),
    "id": ("ind", ["eval/global_mmlu_lite/id.test.jsonl.xz"]),
    "ms": ("zsm", ["eval/global_mmlu_lite/ms.test.jsonl.xz"]),
    "tl": ("fil", ["eval/global_mmlu_lite/tl.test.jsonl.xz"]),
    "vi": ("vie", ["eval/global_mmlu_lite/vi.test.jsonl.xz"]),
    "pt": ("por", ["eval/enem/2024.jsonl.xz"]),
    "th": ("tha", ["eval/mgsm/th.tsv.xz"]),
    "zh": ("cmn_Hani", ["eval/mgsm/zh.tsv.xz"]),
}
OVERLAPS = (
    ("math/MATH/train7500", "math/math500/test"),
    ("math/MATH/train7500", "math/eval_qwen25math/olympiadbench"),
    ("math/rllm_train/aime1983_2023", "math/math500/test"),
    ("math/deepmath_5k/train", "math/eval_qwen25math/olympiadbench"),
    ("math/deepscaler_sub1209/train", "math/eval_qwen25math/olympiadbench"),
)
OF_EACH = 50  # rows of a benchmark
CARRIER = 1500  # characters around a planted row


class Planted(NamedTuple):
    kind: str
    place: str
    document: Document


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peer-python", help="an interpreter with datatrove")
    parser.add_argument(
        "--list", action="store_true", help="list what GSM8K's train has of its test, and stop"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.list:
        list_matches(options.data)
        return
    figures: dict[str, Any] = {"recall": {}, "clean": {}, "speed": {}}
    for language, (name, files) in SOURCES.items():
        against = [Benchmark(path=str(options.data / file), name=Path(file).parent.name) for file in files]
        texts = real_texts(options.data, language)
        planted = plant(against, texts, language, options)
        figures["recall"][language] = recall_of(planted, against, name, options)
        figures["clean"][language], figures["speed"][language] = on_clean(texts, against, name, options)
        print(language, json.dumps({key: figures[key][language] for key in figures}), flush=True)
    figures["overlaps"] = {f"{one} in {other}": overlap(options.data, one, other) for one, other in OVERLAPS}
    figures["gsm8k"] = {
        renaming: len(gsm8k_matches(options.data, renaming)) for renaming in ("no", "names", "numbers")
    }
    print(json.dumps(figures))


def settings(against: Sequence[Benchmark], **keys: Any) -> Decontaminate:
    return Decontaminate.model_validate({"against": [one.model_dump() for one in against], "n": N, **keys})


# Planted rows.


def plant(
    against: Sequence[Benchmark], texts: Sequence[str], language: str, options: argparse.Namespace
) -> list[Planted]:
    dice = random.Random(f"{language} {options.seed}")
    chats = chat_rows(options.data, language)
    planted = []
    for benchmark in against:
        rows = [row for row in read_benchmark(benchmark) if row.texts]
        kinds = dict(KINDS)
        if benchmark.short_name == "gsm8k":
            rename: Change = partial(renamed, names=names_of([row.texts[0] for row in rows]))
            kinds["other names"] = rename
            kinds["other names and numbers"] = partial(in_turn, (rename, renumbered))
        for row in dice.sample(rows, min(OF_EACH, len(rows))):
            for kind, change in kinds.items():
                carrier = dice.choice(texts)
                cut = dice.randrange(len(carrier) // 2) if carrier else 0
                text = f"{carrier[:cut]}\n\n{change(dice, row.texts[0])}\n\n{carrier[cut:]}"
                planted.append(Planted(kind, row.place, Document(id=row.place, text=text)))
            messages = split_over_messages(dice, row.texts[0], dice.choice(chats))
            planted.append(
                Planted("messages", row.place, with_row(Document(id=row.place), {"messages": messages}))
            )
    return planted


def in_turn(changes: Sequence[Change], dice: random.Random, text: str) -> str:
    for change in changes:
        text = change(dice, text)
    return text


def split_over_messages(dice: random.Random, text: str, chat: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Between the turns of a real conversation: two parts of the row, in turns of their own."""
    places = [place for place, sign in enumerate(text) if sign in " \n。，"] or [len(text) // 2]
    middle = [place for place in places if 0.3 < place / len(text) < 0.7]
    cut = dice.choice(middle or places)
    parts = [{"role": "user", "content": text[:cut]}, {"role": "assistant", "content": text[cut:] or "…"}]
    return [*chat, *parts]


def chat_rows(data: Path, language: str) -> list[list[dict[str, Any]]]:
    file = "dpo_zh_demo" if language == "zh" else "kto_en_demo"
    rows = read_jsonl(data / f"preference/llamafactory_demo/{file}.jsonl.gz")
    found = []
    for row in rows:
        if "chosen" in row:
            row = {"conversations": [*row["conversations"], row["chosen"]]}
        document = read_row(row, "chat", "chat", "conversations")
        if isinstance(document, Document) and document.row is not None:
            found.append(document.row["messages"])
    return found


def recall_of(
    planted: Sequence[Planted], against: Sequence[Benchmark], language: str, options: argparse.Namespace
) -> dict[str, Any]:
    """Of rows that are found: the row itself is named. Of the rival: the document is dropped."""
    searches = {
        renaming: settings(against, renamed=renaming).open_search() for renaming in ("no", "names", "numbers")
    }
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kind, place, document in planted:
        counts[kind]["rows"] += 1
        for renaming, search in searches.items():
            if renaming == "no" or kind.startswith("other names"):
                named = place in {leak.place for leak in search(document)}
                counts[kind]["found" if renaming == "no" else f"found, renamed = {renaming}"] += named
    if options.peer_python:
        reply = ask_peer(options.peer_python, language, against, [one.document.text for one in planted])
        for one, dropped in zip(planted, reply["dropped"], strict=True):
            counts[one.kind]["datatrove"] += dropped
    return {kind: dict(own) for kind, own in counts.items()}


def ask_peer(
    python: str, language: str, against: Sequence[Benchmark], documents: Sequence[str]
) -> dict[str, Any]:
    rows = [text for benchmark in against for row in read_benchmark(benchmark) for text in row.texts]
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        task.write_text(json.dumps({"language": language, "rows": rows, "documents": documents}))
        return dict(json.loads(subprocess.check_output([python, str(PEER), str(task)])))


# Clean texts.


def real_texts(data: Path, language: str) -> list[str]:
    """Lines put together to documents."""
    documents, lines, size = [], [], 0
    for row in read_jsonl(data / f"text/train/{language}.jsonl.xz"):
        lines.append(row["text"])
        size += len(row["text"])
        if size >= CARRIER:
            documents.append("\n".join(lines))
            lines, size = [], 0
    return documents


def on_clean(
    texts: Sequence[str], against: Sequence[Benchmark], language: str, options: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, Any]]:
    """False alarms and MB a CPU-second, of documents of some 1,500 characters and of all of them as one."""
    documents = [Document(id=str(number), text=text) for number, text in enumerate(texts)]
    size = sum(len(text.encode()) for text in texts) / 1e6
    clean: dict[str, Any] = {"documents": len(documents), "MB": round(size, 1)}
    speed: dict[str, Any] = {}
    for renaming in ("no", "names", "numbers"):
        search = settings(against, renamed=renaming).open_search()
        search(documents[0])
        begun = time.process_time()
        alarms = [leak for document in documents for leak in search(document)]
        speed[f"renamed = {renaming}"] = round(size / (time.process_time() - begun), 1)
        clean[f"alarms, renamed = {renaming}"] = len(alarms)
        for leak in alarms:
            print("clean:", language, renaming, leak)
    whole = Document(id="all", text="\n".join(texts))
    search = settings(against).open_search()
    begun = time.process_time()
    search(whole)
    speed["as one document"] = round(size / (time.process_time() - begun), 1)
    if options.peer_python:
        some = texts[: max(1, len(texts) // 20)]
        reply = ask_peer(options.peer_python, language, against, some)
        clean["datatrove"], clean["of documents"] = sum(reply["dropped"]), len(some)
        speed["datatrove"] = round(sum(len(text.encode()) for text in some) / 1e6 / reply["cpu_seconds"], 2)
    return clean, speed


# Training sets against test sets.


def overlap(data: Path, one: str, other: str) -> dict[str, Any]:
    """Documents that leak by the largest share of a row's n-grams that they have."""
    step = settings([Benchmark(path=str(data / f"{other}.jsonl.gz"))])
    shares = [max(leak.share for leak in leaks) for _, leaks in matches(step, data / f"{one}.jsonl.gz")]
    return {"documents": len(shares), "with half of a row or more": sum(share >= 0.5 for share in shares)}


def matches(step: Decontaminate, file: Path) -> Iterator[tuple[Document, Any]]:
    search = step.open_search()
    for number, row in enumerate(read_jsonl(file), 1):
        document = read_row({"answer": "?", **row}, str(number), file.stem, "problems")
        if isinstance(document, Document) and (leaks := search(document)):
            yield document, leaks


def gsm8k_matches(data: Path, renaming: str) -> list[tuple[Document, Any]]:
    step = settings([Benchmark(path=str(data / "math/gsm8k/test.jsonl.gz"))], renamed=renaming)
    return [*matches(step, data / "math/gsm8k/train.jsonl.gz")]


def list_matches(data: Path) -> None:
    test = read_benchmark(Benchmark(path=str(data / "math/gsm8k/test.jsonl.gz")))
    rows = {row.place: row.texts[0] for row in test}
    for renaming in ("no", "names", "numbers"):
        for document, leaks in gsm8k_matches(data, renaming):
            for leak in leaks:
                head = f"renamed = {renaming}: train {document.id}, {leak.place}, share {leak.share:.2f}"
                print(f"\n{head}: {leak.text}")
                print(f"  train: {document.text}\n  test:  {rows[leak.place]}")


def read_jsonl(file: Path) -> Iterator[dict[str, Any]]:
    with (lzma.open if file.suffix == ".xz" else gzip.open)(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
