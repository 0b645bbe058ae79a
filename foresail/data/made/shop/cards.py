"""Offers as a question shows them: on lines, or in one line.

Name: T-Shirt                     T-Shirt (Color: blue; Size: M; Price: $50.88)
Color: blue
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from foresail.data.made.shop.language import Language
from foresail.data.made.shop.table import Offer, Pool, Product

Layout = Literal["lines", "inline", "bars"]
LETTERS = "ABCDEFGH"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a row is written with: the products that may be shown, the language, and chance.

    `split` is that of the phrases, which may be another than that of the products.
    """

    pool: Pool
    language: Language
    rng: Random
    split: str
    layout: Layout

    def money(self, hundredths: int) -> str:
        table = self.pool.table
        return self.language.money(hundredths, table.currency, table.decimals)

    def label(self, name: str) -> str:
        return self.language.label(name)

    def fragments(self, *path: str) -> Sequence[str]:
        """Phrases of this split: fragments("reviews", "price", "good")."""
        place = self.language.phrases
        for name in path:
            place = place[name]
        fragments: Sequence[str] = place[self.split]
        return fragments

    def fragment(self, *path: str) -> str:
        return self.rng.choice(self.fragments(*path))

    def reason(self, name: str, /, **slots: str) -> str:
        return str(self.language.phrases["reasons"][name]).format(**slots)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Which facts of an offer are shown beside its name and options."""

    brand: bool = True
    price: bool = False
    stock: bool = False
    options: bool = True


def pairs(scene: Scene, offer: Offer, shown: Shown) -> list[tuple[str, str]]:
    """[("Brand", "Velmora"), ("Color", "blue"), ("Price", "$50.88")], without the name."""
    facts = []
    if shown.brand and offer.product.brand is not None:
        facts.append((scene.label("brand"), offer.product.brand))
    if shown.options:
        facts += [(capital(attribute), value) for attribute, value in offer.variant.options]
    if shown.price and offer.variant.price is not None:
        facts.append((scene.label("price"), scene.money(offer.price)))
    if shown.stock and offer.variant.in_stock is not None:
        facts.append(
            (scene.label("stock"), scene.label("in_stock" if offer.variant.in_stock else "sold_out"))
        )
    return facts


def capital(text: str) -> str:
    """capital("screen size") -> "Screen size"."""
    return text[:1].upper() + text[1:]


def card(scene: Scene, offer: Offer, shown: Shown, layout: Layout | None = None) -> str:
    marks = scene.language.marks
    facts = pairs(scene, offer, shown)
    if (layout or scene.layout) == "inline":
        return inline(scene, offer.name, facts)
    lines = [f"{name}{marks['colon']}{value}" for name, value in [(scene.label("name"), offer.name), *facts]]
    return "\n".join(lines) if (layout or scene.layout) == "lines" else " | ".join(lines)


def inline(scene: Scene, name: str, facts: Sequence[tuple[str, str]]) -> str:
    marks = scene.language.marks
    inside = marks["semicolon"].join(f"{attribute}{marks['colon']}{value}" for attribute, value in facts)
    return f"{name}{marks['open']}{inside}{marks['close']}" if inside else name


def lettered(scene: Scene, texts: Sequence[str]) -> str:
    """One a line: "A. …"."""
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))


def lettered_offers(scene: Scene, offers: Sequence[Offer], shown: Shown) -> str:
    return lettered(scene, [inline(scene, offer.name, pairs(scene, offer, shown)) for offer in offers])


def dashed(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def dashed_offers(scene: Scene, offers: Sequence[Offer], shown: Shown) -> str:
    return dashed([inline(scene, offer.name, pairs(scene, offer, shown)) for offer in offers])


def catalogue_line(scene: Scene, product: Product) -> str:
    """All values of each attribute: T-Shirt (Color: black, blue; Size: S, M)."""
    facts = [(capital(name), scene.language.join(values)) for name, values in product.attributes.items()]
    return inline(scene, product.name, facts)


def variant_lines(scene: Scene, offers: Sequence[Offer], shown: Shown) -> str:
    """Variants of one product, without its name: "- Color: blue; Size: M; Price: $50.88"."""
    marks = scene.language.marks
    return dashed(
        [
            marks["semicolon"].join(
                f"{name}{marks['colon']}{value}" for name, value in pairs(scene, offer, shown)
            )
            for offer in offers
        ]
    )
