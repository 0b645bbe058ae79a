"""Documents that should stay and documents that should go, for `heuristic_rules.py`.

documents(Path("../shared/data"), "tune") -> [Sample("prose", "en", "The ferry left …"), …]

Two halves, `tune` and `report`, by a checksum of the text: limits were chosen on the first. Noise is made of prose
of the same half; menus are the links of real pages.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import random
import re
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Any

from foresail.curate.document import Document
from foresail.curate.extract.step import Extract

Row = dict[str, Any]
UNSPACED = ("th", "zh")
DOCUMENT = 1500  # characters to which sentences are joined; half of it in Chinese
SHORTEST = 200  # characters of a document; in Chinese 80
PER_LANGUAGE = 150
NOISE_PER_LANGUAGE = 30
LOREM = (
    "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore "
    "magna aliqua ut enim ad minim veniam quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo"
)
LINK = re.compile(r"<a\b[^>]*>(.*?)</a>", re.DOTALL | re.IGNORECASE)
AROUND = re.compile(r"<(nav|header|footer)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^>]*>")
KEPT = ("prose", "lessons", "web", "maths", "code")


@dataclass(frozen=True)
class Sample:
    """`part`: one of KEPT, or a kind of noise."""

    part: str
    language: str
    text: str
    page_type: str = ""


def documents(data: Path, half: str) -> list[Sample]:
    good = [sample for sample in natural(data) if half_of(sample.text) == half]
    return good + [*noise(good)] + [menu for menu in menus(data) if half_of(menu.text) == half]


def half_of(text: str) -> str:
    return ("tune", "report")[hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] & 1]


def natural(data: Path) -> Iterator[Sample]:
    for file in sorted((data / "text/train").glob("*.jsonl.xz")):
        language = file.name.split(".")[0]
        own = [*joined(read(file), language)]
        random.Random(language).shuffle(own)
        yield from (Sample("prose", language, text) for text in own[: 2 * PER_LANGUAGE])
    for file in sorted((data / "text/courses").glob("*.jsonl.xz")):
        lessons = [row["text"][:12_000] for row in islice(read(file), 80)]
        yield from (Sample("lessons", file.name.split(".")[0], text) for text in lessons)
    yield from web(data)
    yield from maths(data)
    yield from code(data)


def read(file: Path) -> Iterator[Row]:
    with (lzma if file.suffix == ".xz" else gzip).open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def joined(rows: Iterable[Row], language: str) -> Iterator[str]:
    """Neighbours of one source; longer texts stay alone."""
    longest, shortest = (DOCUMENT // 2, 80) if language == "zh" else (DOCUMENT, SHORTEST)
    texts: list[str] = []
    source = None
    for row in [*rows, {"src": None, "text": ""}]:
        if texts and (row["src"] != source or sum(map(len, texts)) >= longest):
            if sum(map(len, texts)) >= shortest:
                yield "\n".join(texts)
            texts = []
        source = row["src"]
        texts.append(row["text"].strip())


def web(data: Path) -> Iterator[Sample]:
    """The main content of pages of seven types, as the step `extract` gives it."""
    for row in read(data / "html/wcxb_dev/pages.jsonl.xz"):
        page = extracted(row["id"], row["html"].encode("utf-8", "replace"))
        if page is not None and len(page.text) >= SHORTEST:
            yield Sample("web", "en", page.text, page.metadata["page_type"])


def extracted(name: str, html: bytes) -> Document | None:
    outcome = Extract().open()(Document(id=name, content=html, media_type="text/html"))
    return outcome if isinstance(outcome, Document) else None


def maths(data: Path) -> Iterator[Sample]:
    for row in islice(read(data / "math/MATH/train7500.jsonl.gz"), 0, None, 10):
        text = f"{row['problem']}\n\n{row['solution']}"
        if len(text) >= 2 * SHORTEST:
            yield Sample("maths", "en", text)
    for row in read(data / "math/minerva_math_with_answers/test.jsonl.gz"):
        text = f"{row['problem']}\n\n{row['solution']}"
        if len(text) >= 2 * SHORTEST:
            yield Sample("maths", "en", text)
    yield from debian_pages(data)


def debian_pages(data: Path) -> Iterator[Sample]:
    """Pages on scipy and flint: formulas, signatures, code."""
    with tarfile.open(data / "html/debian_docs_mathjax_code/pages.tar.xz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name.endswith(".html"):
                page = extracted(member.name, content.read())
                if page is not None:
                    yield Sample("maths", "en", page.text, page.metadata["page_type"])


def code(data: Path) -> Iterator[Sample]:
    for row in islice(read(data / "code/leetcodedataset/v0.2.0-train.jsonl.gz"), 0, None, 4):
        yield Sample("code", "en", row["completion"])
    for row in read(data / "code/humaneval/HumanEval.jsonl.gz"):
        yield Sample("code", "en", row["prompt"] + row["canonical_solution"])
    for row in islice(read(data / "code/mbppplus/MbppPlus.jsonl.gz"), 200):
        yield Sample("code", "en", f"{row['prompt']}\n\n```python\n{row['canonical_solution']}\n```")
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    files += sorted(Path(sysconfig.get_path("include")).glob("*.h"))
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")[:12_000]
        if len(text) >= SHORTEST:
            yield Sample("code", "en", text)


def menus(data: Path) -> Iterator[Sample]:
    """A link in a line: those of headers, footers and navigation."""
    for row in read(data / "html/wcxb_dev/pages.jsonl.xz"):
        around = "".join(match[0] for match in AROUND.finditer(row["html"]))
        links = [" ".join(unescape(TAG.sub(" ", match[1])).split()) for match in LINK.finditer(around)]
        text = "\n".join(link for link in links if link)
        if len(text) >= SHORTEST:
            yield Sample("menu", "en", text)


def noise(good: list[Sample]) -> Iterator[Sample]:
    languages = sorted({sample.language for sample in good})
    for part, maker in MAKERS.items():
        for language in languages:
            own = [sample for sample in good if sample.part == "prose" and sample.language == language]
            generator = random.Random(f"{part} {language}")
            for sample in generator.sample(own, min(NOISE_PER_LANGUAGE, len(own))):
                yield Sample(part, language, maker(sample.text, language, generator))


def shuffled(text: str, language: str, generator: random.Random) -> str:
    words = list(text) if language in UNSPACED else text.split(" ")
    generator.shuffle(words)
    return ("" if language in UNSPACED else " ").join(words)


def keywords(text: str, language: str, generator: random.Random) -> str:
    """A dozen words of the text, again and again, as pages have them that want to be found."""
    words = re.findall(r"\w{3,12}", text) or ["sale"]
    few = generator.sample(words, min(12, len(words)))
    phrases = [" ".join(generator.choices(few, k=generator.randrange(1, 4))) for _ in range(80)]
    return generator.choice([", ", " | ", "\n"]).join(phrases)


def repeated_lines(text: str, language: str, generator: random.Random) -> str:
    """Lines of the text, some of them several times."""
    lines = [line for line in re.split(r"\n|(?<=[.!?。]) ?", text) if line.strip()]
    return "\n".join(generator.choices(lines, k=2 * len(lines)))


def mojibake(text: str, language: str, generator: random.Random) -> str:
    """UTF-8 read as Latin-1. In languages that use only ASCII: cut into broken characters."""
    wrong = text.encode("utf-8").decode("latin-1")
    if sum(not character.isascii() for character in wrong) * 50 >= len(wrong):
        return wrong
    return "".join("\ufffd" if generator.random() < 0.05 else character for character in text)


def random_characters(text: str, language: str, generator: random.Random) -> str:
    return "".join(chr(generator.randrange(33, 1000)) if generator.random() < 0.3 else c for c in text)


def binary(text: str, language: str, generator: random.Random) -> str:
    return generator.randbytes(len(text)).decode(generator.choice(["latin-1", "utf-8"]), "replace")


def lorem(text: str, language: str, generator: random.Random) -> str:
    """Filler between paragraphs of a page."""
    words = LOREM.split()
    sentences = [LOREM.capitalize() + "."]
    for _ in range(12):
        sentences.append(" ".join(generator.choices(words, k=generator.randrange(6, 16))).capitalize() + ".")
    return f"{text[:200]}\n" + " ".join(sentences)


MAKERS: dict[str, Callable[[str, str, random.Random], str]] = {
    "shuffled": shuffled,
    "keywords": keywords,
    "repeated_lines": repeated_lines,
    "mojibake": mojibake,
    "random_characters": random_characters,
    "binary": binary,
    "lorem_ipsum": lorem,
}
