"""A form of question: what it can be asked about, and how one row of it is written.

A task has one form or several. An anchor is what a row is about, such as a variant; rows of one form and language
take the anchors one after another, so that none comes twice before all have come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foresail.data.made.shop.cards import LETTERS, Scene
from foresail.data.made.shop.table import Offer, Pool

Anchor = Any
Check = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A row before its phrase is chosen.

    `answer` passes `check`, the column that the grader `structured` reads. `asked` is what the answer follows from
    beside the rows of the table; `solution` is the reasoning before it, if there is any.
    """

    slots: Mapping[str, str]
    answer: str
    check: Check
    offers: Sequence[Offer]
    asked: Mapping[str, Any] = field(default_factory=dict)
    solution: str = ""


@dataclass(frozen=True, kw_only=True)
class Form:
    """`needs` are columns of the table, of `table.COLUMNS`. `kind` chooses the instruction on how to answer."""

    name: str
    kind: str
    needs: tuple[str, ...]
    anchors: Callable[[Pool], Sequence[Anchor]]
    write: Callable[[Scene, Anchor], Draft]


def choice(texts: Sequence[str], right: int) -> dict[str, Any]:
    """Answer and check of a choice among lettered texts."""
    return {
        "answer": LETTERS[right],
        "check": {"kind": "choice", "options": dict(zip(LETTERS, texts, strict=False))},
    }


def text(scene: Scene, answer: str, *others: str) -> dict[str, Any]:
    return {"answer": answer, "check": {"kind": "text", "accept": [answer, *others]}}


def yes_or_no(scene: Scene, yes: bool) -> dict[str, Any]:
    """The words of the language: the first is how the answer is written."""
    words = scene.language.words["yes" if yes else "no"]
    return {"answer": words[0], "check": {"kind": "text", "accept": [*words]}}


def number(scene: Scene, hundredths: int, *, money: bool) -> dict[str, Any]:
    """An amount or a count, as the language writes it."""
    language, table = scene.language, scene.pool.table
    check: dict[str, Any] = {"kind": "number", "decimal": language.marks["decimal"]}
    if money:
        check["units"] = list(language.units(table.currency))
        return {"answer": language.number(hundredths, table.decimals), "check": check}
    return {"answer": language.number(hundredths, 0), "check": check}


def several(scene: Scene, items: Sequence[str]) -> dict[str, Any]:
    """A list in any order."""
    return {
        "answer": scene.language.join(items),
        "check": {"kind": "list", "items": [*items], "and": [*scene.language.words["and"]]},
    }


def with_options(pool: Pool, least: int = 1) -> list[Offer]:
    return [offer for offer in pool.offers if len(offer.variant.options) >= least]


def siblings(offer: Offer) -> list[Offer]:
    """The other variants of its product."""
    others = [variant for variant in offer.product.variants if variant != offer.variant]
    return [Offer(product=offer.product, variant=variant) for variant in others]


def with_siblings(pool: Pool, least: int = 1) -> list[Offer]:
    return [offer for offer in with_options(pool) if len(offer.product.variants) > least]
