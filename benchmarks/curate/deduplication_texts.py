"""Texts for `deduplication.py`: real ones, edited copies of them, and as many made ones as wanted.

real_texts(data)[0].text            sentences of one source joined to a text, or the gold text of a web page
copies(dice, text, words)           ("replaced", "…"): a copy with so many edits of one kind
made_texts(data, 1_000_000)         drawn from the sentences, with copies, the same ones for one seed
"""

from __future__ import annotations

import json
import lzma
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

WORDS = 200  # of a text, if its language writes spaces
SENTENCE = 40  # words at most, in made texts
CHARACTERS = 600  # of one that does not
UNSPACED = ("th", "zh")
PAGE_CHARACTERS = 20_000
EXACT, EDITED = 0.06, 0.14  # of made texts
HISTORY = 200_000  # texts that a copy may be of


@dataclass(frozen=True, kw_only=True)
class Text:
    """`of` is the number of the text that it is a copy of, `edit` how it was changed, `words` how often."""

    text: str
    language: str
    of: int = -1
    edit: str = ""
    words: int = 0


def sentences(data: Path, languages: Sequence[str] = ()) -> dict[str, list[list[str]]]:
    """By language: the texts of each source, in their order."""
    found: dict[str, list[list[str]]] = {}
    for file in sorted((data / "text/train").glob("*.jsonl.xz")):
        language = file.name.partition(".")[0]
        if languages and language not in languages:
            continue
        sources: dict[str, list[str]] = defaultdict(list)
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                sources[row["src"]].append(row["text"])
        found[language] = list(sources.values())
    return found


def real_texts(data: Path, *, each: int) -> list[Text]:
    """Up to `each` texts of every language, and the pages."""
    texts = []
    for language, sources in sentences(data).items():
        joined = [text for lines in sources for text in joined_texts(lines, language)]
        random.Random(language).shuffle(joined)
        texts += [Text(text=text, language=language) for text in joined[:each]]
    with lzma.open(data / "html/wcxb_dev/pages.jsonl.xz", "rt", encoding="utf-8") as lines:
        texts += [Text(text=json.loads(line)["gold"][:PAGE_CHARACTERS], language="pages") for line in lines]
    return texts


def joined_texts(lines: Sequence[str], language: str) -> Iterator[str]:
    """Sentences in their order until a text is long enough; each stands in one text."""
    parts: list[str] = []
    size = 0
    for line in lines:
        parts.append(line)
        size += len(line) if language in UNSPACED else line.count(" ") + 1
        if size >= (CHARACTERS if language in UNSPACED else WORDS):
            yield "\n".join(parts)[:PAGE_CHARACTERS]
            parts, size = [], 0


# Copies with known edits.

KINDS = ("replaced", "removed", "doubled", "swapped", "block", "shortened", "restyled")


def copies(dice: random.Random, text: str, stock: Sequence[str], words: int) -> tuple[str, str]:
    """The kind of edit, and the copy: `words` words changed one by one, or a block of so many at one place.

    `stock`: words that are put in. Texts without spaces are cut into parts of four characters instead.
    """
    kind = dice.choice(KINDS)
    joint = " " if text.count(" ") > len(text) / 20 else ""
    own = text.split(" ") if joint else re.findall(r"(?s).{1,4}", text)
    if kind == "restyled":  # the same shingles
        return kind, text.upper().replace(" ", ",  ") if joint else text.replace("", "\u200b")
    if kind == "block":
        at = dice.randrange(len(own) + 1)
        own[at:at] = dice.choices(stock, k=words)
    elif kind == "shortened":
        own = own[: max(1, len(own) - words)]
    else:
        for _ in range(words):
            at = dice.randrange(len(own))
            if kind == "swapped":
                own[at : at + 2] = reversed(own[at : at + 2])
            else:
                changed = {"replaced": [dice.choice(stock)], "removed": [], "doubled": [own[at]] * 2}
                own[at : at + 1] = changed[kind]
            own = own or [dice.choice(stock)]
    return kind, joint.join(own)


def with_copies(originals: Sequence[Text], *, seed: int, most: int, largest: float) -> list[Text]:
    """Each original, and up to `most` copies of it with edits of up to a share `largest` of its words; mixed."""
    dice = random.Random(seed)
    texts: list[Text] = []
    stock = [word for text in originals for word in text.text.split()[:3] if len(word) < 20]
    for number, original in enumerate(originals):
        texts.append(original)
        size = max(4, len(original.text.split()) if original.language not in UNSPACED else 100)
        for _ in range(dice.randrange(most + 1)):
            words = round(dice.random() * largest * size)
            kind, text = copies(dice, original.text, stock, words)
            texts.append(Text(text=text, language=original.language, of=number, edit=kind, words=words))
    dice.shuffle(texts)
    return texts


# As many as wanted.


def made_texts(data: Path, count: int, *, seed: int) -> Iterator[str]:
    """English and Indonesian sentences drawn at random, about 200 words a text; 6 % exact copies, 14 % edited."""
    stocks = [
        [
            line
            for lines in sources
            for text in lines
            for line in text.split("\n")
            if 0 < line.count(" ") < SENTENCE
        ]
        for sources in sentences(data, ("en", "id")).values()
    ]
    lengths = [[line.count(" ") + 1 for line in stock] for stock in stocks]
    words = [word for word in " ".join(stocks[0][:5000]).split(" ") if word]
    dice = random.Random(seed)
    history: list[str] = []
    for number in range(count):
        chance = dice.random()
        if chance < EXACT and history:
            text = dice.choice(history)
        elif chance < EXACT + EDITED and history:
            text = copies(dice, dice.choice(history), words, dice.randrange(1, 12))[1]
        else:
            which = dice.randrange(len(stocks))
            parts, size = [], 0
            while size < WORDS:
                at = dice.randrange(len(stocks[which]))
                parts.append(stocks[which][at])
                size += lengths[which][at]
            text = "\n".join(parts)
            if len(history) < HISTORY:
                history.append(text)
            else:
                history[number % HISTORY] = text
        yield text
