"""Product and brand information: whose product it is, how many a brand has, what comes in a given value."""

from __future__ import annotations

from itertools import islice
from random import Random

from foresail.data.made.shop.cards import Scene, Shown, capital, catalogue_line, dashed, dashed_offers
from foresail.data.made.shop.form import Anchor, Draft, Form, number, text, with_options
from foresail.data.made.shop.table import Offer, Pool, Product, offers_of

LISTED, OTHERS = 5, 3
LONGEST = 220  # characters of a product's line in a catalogue

Value = tuple[Product, str, str]


def branded(pool: Pool) -> list[Offer]:
    return [offer for offer in with_options(pool) if offer.product.brand is not None]


def listing(scene: Scene, offer: Offer) -> list[Offer]:
    """The offer among others of other names, in any order."""
    branded = (one for one in scene.pool.others(offer.product, scene.rng) if one.brand is not None)
    listed = [offer, *(any_offer(scene, product) for product in islice(branded, LISTED - 1))]
    scene.rng.shuffle(listed)
    return listed


def any_offer(scene: Scene, product: Product) -> Offer:
    return Offer(product=product, variant=scene.rng.choice(product.variants))


def write_brand(scene: Scene, offer: Anchor) -> Draft:
    listed = listing(scene, offer)
    brand = offer.product.brand
    return Draft(
        slots={"offers": dashed_offers(scene, listed, Shown()), "name": offer.name},
        **text(scene, brand),
        offers=[offer, *(other for other in listed if other != offer)],
    )


def write_brand_count(scene: Scene, offer: Anchor) -> Draft:
    brand = offer.product.brand
    listed = listing(scene, offer)
    # another product of the brand, now and then, so that the answer is not always 1
    same = [one for one in scene.pool.by_brand[brand].values() if one.name != offer.name]
    for product in scene.rng.sample(same, min(len(same), scene.rng.randrange(4))):
        free = [n for n, other in enumerate(listed) if other.product.brand != brand]
        if free and product.name not in {other.name for other in listed}:
            listed[free[0]] = any_offer(scene, product)
    of_brand = [other for other in listed if other.product.brand == brand]
    return Draft(
        slots={"offers": dashed_offers(scene, listed, Shown()), "brand": brand},
        **number(scene, 100 * len(of_brand), money=False),
        offers=listed,
        asked={"brand": brand},
        solution=scene.reason(
            "of_brand", brand=brand, names=scene.language.join([other.name for other in of_brand])
        ),
    )


def values(pool: Pool) -> list[Value]:
    """Values that a product comes in, and that three others do not."""
    return [
        (product, attribute, value)
        for product in pool.products
        if is_short(product)
        for attribute, its in product.attributes.items()
        for value in its
        if len(without(pool, Random(value), product, value)) == OTHERS
    ]


def is_short(product: Product) -> bool:
    return sum(len(name) + sum(map(len, of)) for name, of in product.attributes.items()) <= LONGEST


def without(pool: Pool, rng: Random, product: Product, value: str) -> list[Product]:
    """Three other products that come in nothing of the kind."""
    lacking = (
        other
        for other in pool.others(product, rng)
        if other.attributes
        and is_short(other)
        and not any(value.casefold() in one.casefold() for of in other.attributes.values() for one in of)
    )
    return list(islice(lacking, OTHERS))


def write_comes_in(scene: Scene, anchor: Anchor) -> Draft:
    product, attribute, value = anchor
    listed = [product, *without(scene.pool, scene.rng, product, value)]
    scene.rng.shuffle(listed)
    return Draft(
        slots={
            "catalogue": dashed([catalogue_line(scene, one) for one in listed]),
            "attribute": capital(attribute),
            "value": value,
        },
        **text(scene, product.name),
        offers=[offer for one in listed for offer in offers_of(one, one.variants)],
        asked={"attribute": attribute, "value": value},
    )


FORMS = (
    Form(name="brand", kind="text", needs=("brand", "attributes"), anchors=branded, write=write_brand),
    Form(
        name="brand-count",
        kind="number",
        needs=("brand", "attributes"),
        anchors=branded,
        write=write_brand_count,
    ),
    Form(name="comes-in", kind="text", needs=("attributes",), anchors=values, write=write_comes_in),
)
