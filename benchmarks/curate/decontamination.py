"""The step `decontaminate`: recall of planted leaks by kind and language, false alarms, speed; beside datatrove.

    python benchmarks/curate/decontamination.py --peer-python PYTHON   # has datatrove; else ours alone

Planted: rows of benchmarks in eight languages, changed in one way, between paragraphs of real texts of their
language; those with choices in one of five templates. "Composed" are two to four changes at once, drawn by a seed;
"messages" splits a row over turns of a real conversation; "a long document" has a million characters around it;
"translated" are the Thai and Chinese rows of MGSM against an index of the English ones. The rival is datatrove: its
n-gram filter with 13 words, an index of the same questions and choices, and its tokenizer of the language (PYTHON
has datatrove 0.10, spacy, stanza, pyvi, pythainlp, jieba, and xxhash below 4). Clean: texts without benchmarks.
Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import resource
import subprocess
import tempfile
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from leak_kinds import KINDS, Change, as_choice, composed, names_of, renamed, renumbered

from foresail.curate.decontaminate.benchmark import Benchmark, read_benchmark
from foresail.curate.decontaminate.build import RowTexts, build_index
from foresail.curate.decontaminate.grams import Grams
from foresail.curate.decontaminate.step import Decontaminate
from foresail.curate.decontaminate.tokens import Masks
from foresail.curate.document import Document
from foresail.curate.rows.row import read_row, with_row

DATA = Path(__file__).parents[3] / "shared/data"
PEER = Path(__file__).with_name("decontamination_peer.py")
N = 13
MMLU, XCOPA = "eval/global_mmlu_lite/{}.test.jsonl.xz", "eval/xcopa/{}.test.jsonl.xz"
SOURCES = {  # by language; the peer's name of it
    "en": (
        "eng",
        ["math/gsm8k/test.jsonl.gz", "math/math500/test.jsonl.gz", "code/humaneval/HumanEval.jsonl.gz",
         MMLU.format("en")],
    ),
    "id": ("ind", [MMLU.format("id"), XCOPA.format("id")]),
    "ms": ("zsm", [MMLU.format("ms")]),
    "tl": ("fil", [MMLU.format("tl")]),
    "vi": ("vie", [MMLU.format("vi"), XCOPA.format("vi")]),
    "pt": ("por", ["eval/enem/2024.jsonl.xz"]),
    "th": ("tha", ["eval/mgsm/th.tsv.xz", XCOPA.format("th")]),
    "zh": ("cmn_Hani", ["eval/mgsm/zh.tsv.xz", XCOPA.format("zh"), MMLU.format("zh")]),
}  # fmt: skip
CARRIER, LONG = 1500, 10**6  # characters around a planted row


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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=30, help="of each file that are planted")
    parser.add_argument("--languages", nargs="+", default=[*SOURCES], choices=[*SOURCES])
    options = parser.parse_args()
    figures: dict[str, Any] = {"recall": {}, "clean": {}, "speed": {}}
    for language in options.languages:
        name, files = SOURCES[language]
        against = [Benchmark(path=str(options.data / file), name=Path(file).parent.name) for file in files]
        texts = real_texts(options.data, language)
        planted = plant(against, texts, language, options)
        planted += in_long_documents(planted, texts, options.seed)
        figures["recall"][language] = recall_of(planted, against, name, options)
        figures["clean"][language], figures["speed"][language] = on_clean(texts, against, name, options)
        print(language, json.dumps({key: figures[key][language] for key in figures}), flush=True)
    figures["translated"] = translated(options.data)
    figures["by kind"] = by_kind(figures["recall"])
    figures["index"] = index_cost(options.data)
    figures["peak GB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
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
        kinds: dict[str, Change] = {**KINDS, "composed": composed}
        if benchmark.short_name == "gsm8k":
            rename: Change = partial(renamed, names=names_of([row.texts[0] for row in rows]))
            kinds["other names"] = rename
            kinds["other names and numbers"] = partial(in_turn, (rename, renumbered))
        for row in dice.sample(rows, min(options.rows, len(rows))):
            text = as_choice(dice, row.parts[0], row.parts[1:]) if row.parts else row.texts[0]
            for kind, change in kinds.items():
                around = between(dice, change(dice, text), dice.choice(texts))
                planted.append(Planted(kind, row.place, Document(id=row.place, text=around)))
            messages = split_over_messages(dice, text, dice.choice(chats))
            planted.append(
                Planted("messages", row.place, with_row(Document(id=row.place), {"messages": messages}))
            )
    return planted


def between(dice: random.Random, text: str, carrier: str) -> str:
    cut = dice.randrange(len(carrier) // 2) if carrier else 0
    return f"{carrier[:cut]}\n\n{text}\n\n{carrier[cut:]}"


def in_long_documents(planted: Sequence[Planted], texts: Sequence[str], seed: int) -> list[Planted]:
    """Ten rows as they are, each between a million characters; of ours alone, for the rival is slow."""
    dice, carrier = random.Random(seed), ("\n".join(texts) * (LONG // sum(map(len, texts)) + 1))[:LONG]
    plain = [one for one in planted if one.kind == "as it is"]
    return [
        Planted(
            "a long document",
            one.place,
            Document(id=one.place, text=between(dice, one.document.text, carrier)),
        )
        for one in dice.sample(plain, 10)
    ]


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
    chats = []
    for row in rows:
        if "chosen" in row:
            row = {"conversations": [*row["conversations"], row["chosen"]]}
        document = read_row(row, "chat", "chat", "conversations")
        if isinstance(document, Document) and document.row is not None:
            chats.append(document.row["messages"])
    return chats


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
        asked = [one for one in planted if one.kind != "a long document"]
        reply = ask_peer(options.peer_python, language, against, [one.document.text for one in asked])
        for one, dropped in zip(asked, reply["dropped"], strict=True):
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


def translated(data: Path) -> dict[str, int]:
    """Rows of MGSM in Thai and Chinese of which a row in English is named."""
    search = settings([Benchmark(path=str(data / "eval/mgsm/en.tsv.xz"))]).open_search()
    counts = {"rows": 0, "found": 0}
    for language in ("th", "zh"):
        for row in read_benchmark(Benchmark(path=str(data / f"eval/mgsm/{language}.tsv.xz"))):
            counts["rows"] += 1
            counts["found"] += bool(search(Document(id=row.place, text=row.texts[0])))
    return counts


def by_kind(recall: dict[str, Any]) -> dict[str, Any]:
    """All languages together."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kinds in recall.values():
        for kind, counts in kinds.items():
            for name, count in counts.items():
                sums[kind][name] += count
    return {kind: dict(counts) for kind, counts in sums.items()}


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
        start = time.process_time()
        alarms = [leak for document in documents for leak in search(document)]
        speed[f"renamed = {renaming}"] = round(size / (time.process_time() - start), 1)
        clean[f"alarms, renamed = {renaming}"] = len(alarms)
        for leak in alarms:
            print("clean:", language, renaming, leak)
    whole = Document(id="all", text="\n".join(texts))
    search = settings(against).open_search()
    start = time.process_time()
    search(whole)
    speed["as one document"] = round(size / (time.process_time() - start), 1)
    if options.peer_python:
        some = texts[: max(1, len(texts) // 20)]
        reply = ask_peer(options.peer_python, language, against, some)
        clean["datatrove"], clean["of documents"] = sum(reply["dropped"]), len(some)
        speed["datatrove"] = round(sum(len(text.encode()) for text in some) / 1e6 / reply["cpu_seconds"], 2)
    return clean, speed


def index_cost(data: Path) -> dict[str, Any]:
    """CPU seconds and MB of memory for an index of many problems, as if these were benchmarks."""
    files = ("math/MATH/train7500", "math/gsm8k/train", "math/deepmath_5k/train")
    texts = [
        row.get("problem") or row["question"]
        for file in files
        for row in read_jsonl(data / f"{file}.jsonl.gz")
    ]
    rows, grams = [RowTexts(0, (text,)) for text in texts], Grams(16, 24)
    start = time.process_time()
    build_index(rows, grams, Masks())
    seconds = time.process_time() - start
    tracemalloc.start()  # it slows the second one
    index = build_index(rows, grams, Masks())
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "rows": len(texts),
        "n-grams": int(index.starts_g[-1]),
        "cpu_seconds": round(seconds, 1),
        "MB": round(now / 1e6),
        "MB while building": round(peak / 1e6),
    }


def read_jsonl(file: Path) -> Iterator[dict[str, Any]]:
    with (lzma.open if file.suffix == ".xz" else gzip.open)(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
