"""Query-product matching: how well an offer fits a search, and which of four offers fits it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from foresail.data.made.shop.cards import Scene, Shown, card, lettered_offers
from foresail.data.made.shop.form import Anchor, Draft, Form, choice, siblings, with_siblings
from foresail.data.made.shop.table import Offer, Pool, Product, offers_of

LABELS = ("exact", "other_options", "other_product")
BARE = Shown(brand=False)
OTHERS, TRIED = 2, 50  # other products beside the right one; products of which one is of another category

Options = Sequence[tuple[str, str]]


def query(scene: Scene, name: str, options: Options) -> str:
    """As people type it: "t-shirt blue cotton"; numbers and single letters with their attribute's name."""
    words = [
        value if len(value) > 2 or not value.isascii() else f"{attribute} {value}"
        for attribute, value in options
    ]
    bare = scene.language.words["bare"]
    words = [
        f"{attribute} {value}" if value in bare else word
        for word, (attribute, value) in zip(words, options, strict=True)
    ]
    pattern = scene.language.phrases["query"]
    return str(pattern).format(name=name, options=" ".join(words)).lower()


def some(scene: Scene, options: Options) -> Options:
    return scene.rng.sample(options, min(len(options), scene.rng.choice((1, 2, 2, 3))))


def write_relevance(scene: Scene, offer: Anchor) -> Draft:
    label = scene.rng.choice(LABELS)
    if label == "exact":
        searched, options = offer.product, some(scene, offer.variant.options)
    elif label == "other_options":
        searched = offer.product
        other = scene.rng.choice([one for one in siblings(offer) if unlike(offer, one)])
        differing = scene.rng.choice(unlike(offer, other))
        others = [option for option in some(scene, other.variant.options) if option != differing]
        options = scene.rng.sample(both := [differing, *others[:2]], len(both))
    else:
        searched = another_kind(scene, offer)
        options = some(scene, scene.rng.choice([v for v in searched.variants if v.options]).options)
    labels = scene.rng.sample(LABELS, len(LABELS))
    texts = [str(scene.language.phrases["labels"][one]) for one in labels]
    return Draft(
        slots={
            "query": query(scene, searched.name, options),
            "card": card(scene, offer, BARE),
            "choices": "\n".join(f"{letter}. {text}" for letter, text in zip("ABC", texts, strict=True)),
        },
        **choice(texts, labels.index(label)),
        offers=[offer],
        asked={"searched": searched.name, "options": dict(options), "labels": labels},
        solution=relevance_reason(scene, offer, searched.name, options),
    )


def another_kind(scene: Scene, offer: Offer) -> Product:
    """Of another category if there is one: sneakers are no wrong answer to running shoes."""
    others = [one for one in islice(scene.pool.others(offer.product, scene.rng), TRIED) if one.attributes]
    return next((one for one in others if one.category != offer.product.category), others[0])


def relevance_reason(scene: Scene, offer: Offer, searched: str, options: Options) -> str:
    if searched != offer.name:
        return scene.reason("searched_other", searched=searched, name=offer.name)
    for attribute, value in options:
        if (has := offer.variant.option(attribute)) != value:
            return scene.reason(
                "searched_differs", attribute=attribute, value=has or scene.label("none"), wanted=value
            )
    return scene.reason("searched_fits")


def unlike(offer: Offer, other: Offer) -> list[tuple[str, str]]:
    """The options of the other that this one has in another value."""
    return [
        (name, value)
        for name, value in other.variant.options
        if (has := offer.variant.option(name)) is not None and has != value
    ]


def searchable(pool: Pool) -> list[Offer]:
    if len({product.name for product in pool.products if product.attributes}) <= OTHERS:
        return []
    return [offer for offer in with_siblings(pool) if any(unlike(offer, one) for one in siblings(offer))]


def write_which(scene: Scene, offer: Anchor) -> Draft:
    """Beside the offer stand a variant that differs in what is searched, and two other products."""
    other = scene.rng.choice([one for one in siblings(offer) if unlike(one, offer)])
    differing = scene.rng.choice(unlike(other, offer))
    others = [option for option in some(scene, offer.variant.options) if option != differing]
    options = scene.rng.sample(both := [differing, *others[:1]], len(both))
    products = (one for one in scene.pool.others(offer.product, scene.rng) if one.attributes)
    listed = [offer, other]
    for product in islice(products, OTHERS):
        listed += offers_of(product, [scene.rng.choice(product.variants)])
    scene.rng.shuffle(listed)
    texts = [line.partition(". ")[2] for line in lettered_offers(scene, listed, BARE).splitlines()]
    return Draft(
        slots={"query": query(scene, offer.name, options), "offers": lettered_offers(scene, listed, BARE)},
        **choice(texts, listed.index(offer)),
        offers=listed,
        asked={"searched": offer.name, "options": dict(options)},
    )


FORMS = (
    Form(name="relevance", kind="choice", needs=("attributes",), anchors=searchable, write=write_relevance),
    Form(name="which", kind="choice", needs=("attributes",), anchors=searchable, write=write_which),
)
