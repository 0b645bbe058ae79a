"""CPU seconds of gigatoken and of `tokenizers` for the same documents, and whether their ids are equal.

    pip install 'foresail[fast-tokenize]'
    python benchmarks/tokenizer/encode_speed.py                  # ../shared/data: 4 tokenizers, 17 languages
    python benchmarks/tokenizer/encode_speed.py --tokenizer checkpoints/qwen --texts texts.jsonl

Both are called as by `foresail data tokenize`, on one thread, batch by batch in turn. `checked` is gigatoken with
the comparison of every 64th call, as users run it. A tokenizer that gigatoken does not know is said so.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import time
from collections.abc import Iterator
from pathlib import Path

from foresail.data.long_context.texts import read_texts
from foresail.tokenizer.documents import CALLS_PER_CHECK, DocumentEncoder
from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.parts import cut_parts
from foresail.tokenizer.tokenizer import Tokenizer

DATA = Path(__file__).resolve().parents[3] / "shared/data"
KNOWN = ("qwen2_5", "llama3", "deepseek_v3", "gemma3")
CHARACTERS_AT_ONCE = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", nargs="*", type=Path, help="folders, or tokenizer.json(.xz) files")
    parser.add_argument("--texts", nargs="*", type=Path, default=[DATA / "text/train"])
    parser.add_argument("--megabytes", type=float, default=8.0, help="of UTF-8, from all files alike")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    batches = [*in_batches(read_sample(args.texts, args.megabytes * 1e6))]
    paths = args.tokenizer or [DATA / f"tokenizers/{name}/tokenizer.json.xz" for name in KNOWN]
    results = [compare(path, batches) for path in paths]
    for result in results:
        print(*(f"{key} {value}" for key, value in result.items()), sep="  ")
    print(json.dumps(results))


def read_sample(sources: list[Path], size: float) -> Iterator[str]:
    files = [
        file for source in sources for file in (sorted(source.iterdir()) if source.is_dir() else [source])
    ]
    for file in files:
        left = size / len(files)
        for text in read_texts(file):
            yield text
            left -= len(text.encode())
            if left <= 0:
                break


def in_batches(texts: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for part in (part for text in texts for part in cut_parts(text)):
        batch.append(part)
        if len(batch) == 512 or sum(map(len, batch)) > CHARACTERS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def compare(path: Path, batches: list[list[str]]) -> dict[str, str | float | int]:
    tokenizer = open_tokenizer(path)
    name = path.parent.name if path.is_file() else path.name
    usual = DocumentEncoder(tokenizer)
    try:
        fast = DocumentEncoder(tokenizer, encoder="gigatoken", calls_per_check=1 << 40)
    except ValueError as error:
        return {"tokenizer": name, "refused": str(error)}
    megabytes = sum(len(text.encode()) for batch in batches for text in batch) / 1e6
    for encoder in (usual, fast):
        encoder.encode(batches[0])  # the first call fills caches, and is checked
    seconds = {"tokenizers": 0.0, "gigatoken": 0.0}
    differing = tokens = 0
    for number, batch in enumerate(batches):
        order = (("tokenizers", usual), ("gigatoken", fast))
        ids = {}
        for key, encoder in order if number % 2 else order[::-1]:
            start = time.process_time()
            ids[key] = encoder.encode(batch)
            seconds[key] += time.process_time() - start
        differing += sum(one != other for one, other in zip(*ids.values(), strict=True))
        tokens += sum(map(len, ids["tokenizers"]))
    checked = seconds["gigatoken"] + seconds["tokenizers"] / CALLS_PER_CHECK
    return {
        "tokenizer": name,
        "megabytes": round(megabytes, 2),
        "tokens": tokens,
        "documents that differ": differing,
        "tokenizers MB per CPU-second": round(megabytes / seconds["tokenizers"], 2),
        "gigatoken MB per CPU-second": round(megabytes / seconds["gigatoken"], 2),
        "ratio": round(seconds["tokenizers"] / seconds["gigatoken"], 1),
        "ratio, checked": round(seconds["tokenizers"] / checked, 1),
    }


def open_tokenizer(path: Path) -> Tokenizer:
    if path.is_dir():
        return Tokenizer.load(path)
    content = path.read_bytes()
    definition = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
    added = json.loads(definition)["added_tokens"]
    end = next(token["content"] for token in added if token["special"])  # any: documents end in one
    return Tokenizer(TokenizerFiles(definition=definition, config={"eos_token": end}))


if __name__ == "__main__":
    main()
