"""Product questioning: is it in stock, what does it cost, in which values is it to be had."""

from __future__ import annotations

from foresail.data.made.shop.cards import Scene, Shown, variant_lines
from foresail.data.made.shop.form import (
    Anchor,
    Draft,
    Form,
    number,
    several,
    siblings,
    with_siblings,
    yes_or_no,
)
from foresail.data.made.shop.table import Offer, Pool, Product, offers_of

LISTED = 6


def stocked(pool: Pool) -> list[Offer]:
    return [
        offer
        for offer in with_siblings(pool)
        if all(variant.in_stock is not None for variant in offer.product.variants)
    ]


def beside(scene: Scene, offer: Offer) -> list[Offer]:
    """The offer among other variants of its product."""
    others = siblings(offer)
    listed = [offer, *scene.rng.sample(others, min(len(others), LISTED - 1))]
    scene.rng.shuffle(listed)
    return listed


def chosen_words(scene: Scene, offer: Offer) -> str:
    return scene.language.pairs(offer.variant.options)


def write_stock(scene: Scene, offer: Anchor) -> Draft:
    listed = beside(scene, offer)
    return Draft(
        slots={
            "name": offer.name,
            "variants": variant_lines(scene, listed, Shown(brand=False, stock=True)),
            "choice": chosen_words(scene, offer),
        },
        **yes_or_no(scene, offer.variant.in_stock is True),
        offers=[offer, *(other for other in listed if other != offer)],
    )


def priced(pool: Pool) -> list[Offer]:
    return [
        offer
        for offer in with_siblings(pool)
        if all(variant.price is not None for variant in offer.product.variants)
    ]


def write_price(scene: Scene, offer: Anchor) -> Draft:
    listed = beside(scene, offer)
    return Draft(
        slots={
            "name": offer.name,
            "variants": variant_lines(scene, listed, Shown(brand=False, price=True)),
            "choice": chosen_words(scene, offer),
        },
        **number(scene, offer.price, money=True),
        offers=[offer, *(other for other in listed if other != offer)],
    )


Question = tuple[Product, str, str, str]


def listable(pool: Pool) -> list[Question]:
    """A product, an attribute with a fixed value, and another attribute with several values, some in stock."""
    return [
        (product, fixed, value, asked)
        for product in pool.products
        if all(variant.in_stock is not None for variant in product.variants)
        for fixed, values in product.attributes.items()
        for value in values
        for asked, its in product.attributes.items()
        if asked != fixed
        and len(its) > 1
        and not any("," in one or "、" in one for one in its)
        and answers(offers_of(product, product.variants), fixed, value, asked)
    ]


def answers(offers: list[Offer], fixed: str, value: str, asked: str) -> list[str]:
    values = {
        has: None
        for offer in offers
        if offer.variant.in_stock and offer.variant.option(fixed) == value
        if (has := offer.variant.option(asked)) is not None
    }
    return list(values)


def write_values(scene: Scene, anchor: Anchor) -> Draft:
    product, fixed, value, asked = anchor
    every = offers_of(product, product.variants)
    fitting = [offer for offer in every if offer.variant.option(fixed) == value]
    others = [offer for offer in every if offer.variant.option(fixed) != value]
    # one that is in stock must be listed, so that there is an answer
    sure = next(
        offer for offer in fitting if offer.variant.in_stock and offer.variant.option(asked) is not None
    )
    also_fitting = [offer for offer in fitting if offer != sure]
    listed = [sure, *scene.rng.sample(also_fitting, min(len(also_fitting), LISTED - 2))]
    listed += scene.rng.sample(others, min(len(others), max(1, LISTED - len(listed))))
    scene.rng.shuffle(listed)
    return Draft(
        slots={
            "name": product.name,
            "variants": variant_lines(scene, listed, Shown(brand=False, stock=True)),
            "attribute": asked,
            "given": fixed,
            "value": value,
        },
        **several(scene, answers(listed, fixed, value, asked)),
        offers=listed,
        asked={"attribute": asked, "given": fixed, "value": value},
    )


FORMS = (
    Form(name="stock", kind="yes_no", needs=("stock", "attributes"), anchors=stocked, write=write_stock),
    Form(name="price", kind="amount", needs=("price", "attributes"), anchors=priced, write=write_price),
    Form(name="values", kind="list", needs=("stock", "attributes"), anchors=listable, write=write_values),
)
