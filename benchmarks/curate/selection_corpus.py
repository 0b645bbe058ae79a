"""Makes the corpora of `selection_study.py` on a CPU: raw documents, what each arm keeps of them, tokens.

The raw corpus is made so that there is something to filter; only its first two parts are natural:

    natural      sentences of one source joined to documents, news, sections of lessons (text/train, text/courses)
    web          whole pages, menus and all (html/wcxb_dev, html/trafilatura_eval; warc)
    repeated     natural documents again, exactly or with 2 to 8 % of the words changed, some up to nine times
    boilerplate  notices made of few phrases of the language, each many times with small changes
    shuffled     natural documents with their words in another order (Thai and Chinese: characters)
    garbled      broken characters, as of a wrong encoding
    keywords     one word after another, without sentences

Labels of the classifier: a tenth of the documents, with a level from 0 to 3 by the part they are of. Who filters
real crawls has labels from a model's judgements instead (`foresail data judge`).

    python benchmarks/curate/selection_corpus.py --data ../shared/data --out runs/selection
The last line is JSON: documents and tokens of each arm, by part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
LANGUAGES = ("en", "id", "ms", "th", "vi", "tl", "pt", "zh")
UNSPACED = ("th", "zh")
LEVELS = {"natural": 3, "repeated": 3, "web": 2, "boilerplate": 1, "keywords": 0, "shuffled": 0, "garbled": 0}
SHARES = {"shuffled": 0.22, "garbled": 0.06, "keywords": 0.10}  # documents, beside the natural ones
DOCUMENT = 1200  # characters to which sentences are joined
SECTION = 3000  # characters at which lessons are cut
HELD_OUT = 0.05
DEDUPLICATED: list[Row] = [{"name": "exact_duplicates"}, {"name": "minhash", "threshold": 0.7}]
RULES: list[Row] = [{"name": "heuristics"}]
CLASSIFIER: Row = {"name": "classify", "rules": [{"name": "quality", "least": 1.5}]}
RESAMPLED: Row = {
    "name": "resample",
    "quality": "quality",
    "tiers": [0.3],
    "copies": [0.7, 1.0],
    "repeat": [0.0, 0.5],
    "most_copies": 4.0,
}


def arms(classifier: Path) -> dict[str, list[Row]]:
    """Steps of each; every arm but two adds one thing to the arm before it."""
    scored = CLASSIFIER | {"model": str(classifier)}
    return {
        "raw": [],
        "exact": DEDUPLICATED[:1],
        "minhash": DEDUPLICATED,
        "heuristics": [*DEDUPLICATED, *RULES],
        "classifier": [*DEDUPLICATED, *RULES, scored],
        "resampled": [*DEDUPLICATED, *RULES, scored, RESAMPLED],
        "repeats kept": [*RULES, scored],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder shared/data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--million-characters", type=float, default=20.0, help="of natural documents")
    parser.add_argument("--vocabulary", type=int, default=16_384)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    natural, held_out = split(natural_documents(options.data, int(options.million_characters * 1e6)))
    rows = raw_corpus(natural, [*web_documents(options.data)])
    with tempfile.TemporaryDirectory(dir=options.out) as scratch:
        print(json.dumps(make(rows, held_out, options.out, Path(scratch), options.vocabulary)))


def make(rows: list[Row], held_out: list[Row], out: Path, scratch: Path, vocabulary: int) -> dict[str, Any]:
    raw = scratch / "raw.jsonl"
    write_jsonl(raw, rows)
    figures: dict[str, Any] = {"classifier": train(rows, scratch)}
    kept = {name: curate_arm(name, steps, raw, scratch) for name, steps in arms(scratch / "q.npz").items()}
    pool: dict[str, int] = {}
    lists: dict[str, Any] = {
        name: np.array([pool.setdefault(row["text"], len(pool)) for row in arm], np.int32)
        for name, arm in kept.items()
    }
    tokenizer = train_tokenizer(rows, out / "tokenizer", vocabulary)
    tokens, ends = encode(tokenizer, pool)
    np.savez_compressed(out / "pool.npz", tokens=tokens, ends=ends)
    held: dict[str, Any] = {}
    for language in LANGUAGES:
        texts = [row["text"] for row in held_out if row["language"] == language]
        held[f"{language}.tokens"], held[f"{language}.ends"] = encode(tokenizer, texts)
        held[f"{language}.bytes"] = np.array(sum(len(text.encode()) for text in texts))
    np.savez_compressed(out / "held-out.npz", **held)
    np.savez_compressed(out / "arms.npz", **lists)
    lengths = np.diff(ends, prepend=0)
    figures["arms"] = {name: describe(arm, lengths[lists[name]]) for name, arm in kept.items()}
    figures["held_out_tokens"] = {name: int(held[f"{name}.ends"][-1]) for name in LANGUAGES}
    (out / "figures.json").write_text(json.dumps(figures, indent=1))
    return figures


# Natural documents.


def natural_documents(data: Path, characters: int) -> list[Row]:
    """Of each language about as many characters; fewer where there are fewer."""
    rows = []
    for language in LANGUAGES:
        own = [*joined(read(data / f"text/train/{language}.jsonl.xz"))]
        if (lessons := data / f"text/courses/{language}.jsonl.xz").is_file():
            own += [{**section, "lesson": True} for section in sections(read(lessons))]
        random.Random(f"natural {language}").shuffle(own)
        room = characters // len(LANGUAGES)
        for number, row in enumerate(own):
            room -= len(row["text"]) * (2 if language in UNSPACED else 1)
            if room < 0:
                break
            rows.append({**row, "id": f"{language}{number}", "language": language, "part": "natural"})
    return rows


def read(file: Path) -> Iterator[Row]:
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def joined(rows: Iterable[Row]) -> Iterator[Row]:
    """Neighbours of one source, to documents of DOCUMENT characters; longer texts stay alone."""
    texts: list[str] = []
    source = None
    for row in rows:
        if texts and (row["src"] != source or sum(map(len, texts)) >= DOCUMENT):
            yield {"text": "\n".join(texts)}
            texts = []
        source = row["src"]
        texts.append(row["text"].strip())
    if texts:
        yield {"text": "\n".join(texts)}


def sections(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        text = ""
        for part in re.split(r"(?m)^(?=## )", row["text"]):
            if text and len(text) + len(part) > SECTION:
                yield {"text": text.strip()}
                text = ""
            text += part
        if text.strip():
            yield {"text": text.strip()}


def web_documents(data: Path) -> Iterator[Row]:
    """All text of each page."""
    from foresail.curate.curation import curate
    from foresail.curate.recipe import build_curation

    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        pages.mkdir()
        htmls = [row["html"] for row in read(data / "html/wcxb_dev/pages.jsonl.xz")]
        for number, html in enumerate(htmls):
            (pages / f"{number}.html").write_text(html, encoding="utf-8", errors="replace")
        recipe = build_curation(
            {
                "out": f"{folder}/out",
                "source": [{"path": str(pages)}, {"path": str(data / "warc/dolma")}],
                "step": [{"name": "extract"}],
                "sink": [{"kind": "jsonl", "compression": "none"}],
            }
        )
        curate(recipe)
        for number, row in enumerate(read_jsonl(Path(folder) / "out/documents")):
            if len(row["text"]) >= 200:
                yield {"id": f"web{number}", "text": row["text"][:20_000], "language": "en", "part": "web"}


def split(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Training and held-out documents, by a checksum of the text."""
    sides: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        digest = hashlib.sha256(row["text"].encode()).digest()
        sides[int.from_bytes(digest[:4], "big") < HELD_OUT * 2**32].append(row)
    return sides


# What is made worse.


def raw_corpus(natural: list[Row], web: list[Row]) -> list[Row]:
    generator = random.Random("raw")
    rows = [*natural, *web, *repeated(natural, generator), *boilerplate(natural, generator)]
    makers = {"shuffled": shuffled, "garbled": garbled, "keywords": keywords}
    for part, maker in makers.items():
        for number, row in enumerate(generator.sample(natural, int(len(natural) * SHARES[part]))):
            text = maker(row["text"], row["language"], generator)
            rows.append({"id": f"{part}{number}", "text": text, "language": row["language"], "part": part})
    generator.shuffle(rows)
    return rows


def words_of(text: str, language: str) -> list[str]:
    return list(text) if language in UNSPACED else text.split(" ")


def join_words(words: list[str], language: str) -> str:
    return ("" if language in UNSPACED else " ").join(words)


def repeated(natural: list[Row], generator: random.Random) -> Iterator[Row]:
    """A sixth of the documents once to nine times more, few of them often."""
    for row in generator.sample(natural, len(natural) // 6):
        for copy in range(min(9, int(generator.paretovariate(1.1)))):
            text = row["text"]
            if generator.random() < 0.7:
                words = words_of(text, row["language"])
                for _ in range(int(len(words) * generator.uniform(0.02, 0.08)) or 1):
                    words[generator.randrange(len(words))] = generator.choice(words)
                text = join_words(words, row["language"])
            yield {"id": f"{row['id']}r{copy}", "text": text, "language": row["language"], "part": "repeated"}


def boilerplate(natural: list[Row], generator: random.Random) -> Iterator[Row]:
    """Notices: twelve short phrases of the language, and twelve draws of them again; many times each."""
    for language in LANGUAGES:
        documents = [row for row in natural if row["language"] == language]
        lines = [line for row in documents for line in row["text"].split("\n")]
        phrases = [line[:60] for line in generator.sample(lines, 300) if len(line) > 15]
        for template in range(len(documents) // 20):
            own = generator.sample(phrases, 12)
            for copy in range(int(generator.paretovariate(0.9)) % 60 + 4):
                text = "\n".join(
                    own + generator.choices(own, k=12) + [f"© {generator.randrange(1990, 2026)}"]
                )
                name = f"boilerplate-{language}-{template}-{copy}"
                yield {"id": name, "text": text, "language": language, "part": "boilerplate"}


def shuffled(text: str, language: str, generator: random.Random) -> str:
    words = words_of(text, language)
    generator.shuffle(words)
    return join_words(words, language)


def garbled(text: str, language: str, generator: random.Random) -> str:
    if language in UNSPACED or generator.random() < 0.5:
        return text.encode("utf-8")[: len(text) * 2].decode("latin-1")
    return "".join(chr(generator.randrange(33, 1000)) if generator.random() < 0.3 else char for char in text)


def keywords(text: str, language: str, generator: random.Random) -> str:
    words = re.findall(r"\w{3,20}", text) or ["sale"]
    return ", ".join(generator.choice(words) for _ in range(min(200, len(words))))


# From documents to what the card reads.


def train(rows: list[Row], scratch: Path) -> dict[str, Any]:
    """The classifier of a tenth of the documents; its held-out figures."""
    from foresail.curate.quality.labels import LabelledText
    from foresail.curate.quality.training import Training, train_classifier

    sample = random.Random("labels").sample(rows, len(rows) // 10)
    labelled = (
        LabelledText(text=row["text"], labels={"quality": float(LEVELS[row["part"]])}) for row in sample
    )
    (scratch / "features").mkdir()
    model, figures = train_classifier(labelled, scratch / "features", Training(epochs=10))
    model.save(scratch / "q.npz")
    return figures["quality"]


def curate_arm(name: str, steps: list[Row], raw: Path, scratch: Path) -> list[Row]:
    from foresail.curate.curation import curate
    from foresail.curate.recipe import build_curation
    from foresail.curate.steps import STEPS

    if missing := [step["name"] for step in steps if step["name"] not in STEPS]:
        print(f"{name}: without {', '.join(missing)}, which this version lacks", flush=True)
    table = {
        "out": str(scratch / f"arm-{name}"),
        "source": [{"path": str(raw)}],
        "step": [dict(step) for step in steps if step["name"] in STEPS],
        "sink": [{"kind": "jsonl", "compression": "none"}],
    }
    summary = curate(build_curation(table))
    print(name, summary.kept, summary.dropped(), flush=True)
    return [
        {"text": row["text"], "part": row["metadata"]["part"]}
        for row in read_jsonl(scratch / f"arm-{name}" / "documents")
    ]


def write_jsonl(file: Path, rows: Iterable[Row]) -> None:
    keys = ("id", "text", "language", "part")
    file.write_text(
        "".join(json.dumps({key: row[key] for key in keys}) + "\n" for row in rows), encoding="utf-8"
    )


def read_jsonl(folder: Path) -> Iterator[Row]:
    for file in sorted(folder.glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def train_tokenizer(rows: list[Row], folder: Path, vocabulary: int) -> Any:
    """Of the natural documents; all arms share it."""
    from foresail.tokenizer.train import train_bpe

    texts = (row["text"] for row in rows if row["part"] == "natural")
    tokenizer = train_bpe(texts, vocab_size=vocabulary)
    tokenizer.save(folder)
    return tokenizer


def encode(tokenizer: Any, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """All ids in a row, each text with its end; and where each ends."""
    ids = [np.array([*tokenizer.encode(text), tokenizer.eos_ids[0]], np.uint16) for text in texts]
    return np.concatenate(ids), np.cumsum([len(own) for own in ids])


def describe(rows: list[Row], lengths: np.ndarray) -> dict[str, Any]:
    tokens: Counter[str] = Counter()
    for row, length in zip(rows, lengths.tolist(), strict=True):
        tokens[row["part"]] += length
    return {"documents": len(rows), "tokens": sum(tokens.values()), **dict(tokens.most_common())}


if __name__ == "__main__":
    main()
