"""Product classification: the category of an offer, and the one of four that is of another category."""

from __future__ import annotations

from foresail.data.made.shop.cards import Scene, Shown, card, lettered, lettered_offers
from foresail.data.made.shop.form import Anchor, Draft, Form, choice, with_options
from foresail.data.made.shop.table import Offer, Pool, offers_of

CHOICES, SAME = 4, 3


def classified(pool: Pool) -> list[Offer]:
    if len(pool.table.categories) < 2:
        return []
    return [offer for offer in with_options(pool) if offer.product.category is not None]


def write_category(scene: Scene, offer: Anchor) -> Draft:
    others = [category for category in scene.pool.table.categories if category != offer.product.category]
    choices = [offer.product.category, *scene.rng.sample(others, min(CHOICES - 1, len(others)))]
    scene.rng.shuffle(choices)
    return Draft(
        slots={"card": card(scene, offer, Shown(brand=False)), "choices": lettered(scene, choices)},
        **choice(choices, choices.index(offer.product.category)),
        offers=[offer],
        asked={"choices": choices},
    )


def odd_ones(pool: Pool) -> list[Offer]:
    """Offers beside which three products of one other category can stand."""
    return [offer for offer in classified(pool) if full_categories(pool, offer)]


def full_categories(pool: Pool, offer: Offer) -> list[str]:
    return [
        category
        for category, products in pool.by_category.items()
        if category != offer.product.category and len(products) - (offer.name in products) >= SAME
    ]


def write_odd(scene: Scene, offer: Anchor) -> Draft:
    category = scene.rng.choice(full_categories(scene.pool, offer))
    products = [one for name, one in scene.pool.by_category[category].items() if name != offer.name]
    three = scene.rng.sample(products, SAME)
    listed = [offer, *(offers_of(product, [scene.rng.choice(product.variants)])[0] for product in three)]
    scene.rng.shuffle(listed)
    right = listed.index(offer)
    names = [one.name for one in listed]
    others = [name for name in names if name != offer.name]
    return Draft(
        slots={"offers": lettered_offers(scene, listed, Shown(brand=False))},
        **choice(names, right),
        offers=listed,
        solution=scene.reason(
            "odd",
            category=category,
            names=scene.language.join(others),
            name=offer.name,
            other=offer.product.category,
        ),
    )


FORMS = (
    Form(
        name="category",
        kind="choice",
        needs=("category", "attributes"),
        anchors=classified,
        write=write_category,
    ),
    Form(
        name="odd-one-out", kind="choice", needs=("category", "attributes"), anchors=odd_ones, write=write_odd
    ),
)
