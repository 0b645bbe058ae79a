"""Documents with copies that were edited, and what a step decides on them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foresail.curate.deduplicate.shingles import shingles
from foresail.curate.document import Document, Drop

WORDS = "river stone lamp garden winter engine letter market silver orange window music paper doctor bridge".split()


def words(dice: random.Random, count: int) -> list[str]:
    return [dice.choice(WORDS) + str(dice.randrange(40)) for _ in range(count)]


def edited(dice: random.Random, text: str, edits: int) -> str:
    """Words replaced, removed, doubled."""
    own = text.split(" ")
    for _ in range(edits):
        at = dice.randrange(len(own))
        own[at : at + 1] = dice.choice([[], [own[at], own[at]], words(dice, 1)])
        own = own or ["x"]
    return " ".join(own)


def texts_with_copies(seed: int, originals: int) -> list[str]:
    """Originals of some length, each with up to three copies of 0 to 8 edits, in a mixed order."""
    dice = random.Random(seed)
    texts = []
    for _ in range(originals):
        text = " ".join(words(dice, dice.randrange(40, 160)))
        texts += [text, *(edited(dice, text, dice.randrange(9)) for _ in range(dice.randrange(4)))]
    dice.shuffle(texts)
    return texts


def jaccard(one: str, other: str, **settings: Any) -> float:
    left, right = set(shingles(one, **settings)), set(shingles(other, **settings))
    return len(left & right) / max(1, len(left | right))


def decide(
    step: Any, folder: Path, pieces: Sequence[Sequence[Document]]
) -> tuple[list[list[Any]], dict[str, Any]]:
    """The outcome of each document of each piece, and the step's figures."""
    (folder / "scratch").mkdir(parents=True)
    features = [folder / f"{number}.features" for number in range(len(pieces))]
    decisions = [folder / f"{number}.decisions" for number in range(len(pieces))]
    for piece, file in zip(pieces, features, strict=True):
        step.collect(iter(piece), file)
    figures = step.decide(features, decisions, folder / "scratch")
    outcomes = []
    for piece, file in zip(pieces, decisions, strict=True):
        apply = step.open(file)
        outcomes.append([apply(number, document) for number, document in enumerate(piece)])
    return outcomes, figures


def documents(texts: Sequence[str], name: str = "d") -> list[Document]:
    return [Document(id=f"{name}:{number}", text=text) for number, text in enumerate(texts)]


def cut(all_documents: Sequence[Document], *sizes: int) -> list[list[Document]]:
    """Pieces of these sizes, and one of the rest."""
    pieces, at = [], 0
    for size in (*sizes, len(all_documents)):
        pieces.append([*all_documents[at : at + size]])
        at += size
    return pieces


def named(drop: Drop) -> str:
    return drop.detail.removeprefix("repeats ")
