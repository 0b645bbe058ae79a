"""Query rewriting: from a chatty request to a short search, or to filters in JSON."""

from __future__ import annotations

import json

from foresail.data.made.shop.amounts import round_up
from foresail.data.made.shop.cards import Scene
from foresail.data.made.shop.constraints import length_limit, mentions, speaking_options
from foresail.data.made.shop.form import Anchor, Draft, Form, with_options
from foresail.data.made.shop.language import plain_number
from foresail.data.made.shop.table import Offer, Pool
from foresail.data.made.shop.tasks.extraction import quoted

SPARE = 2  # options of a request, at the most


def unwanted(offer: Offer, chosen: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Values that a request may refuse: of its own attributes, and no part of what it asks for."""
    asked = " ".join([offer.name, *(value for _, value in chosen)])
    return [
        (name, value)
        for name, own in chosen
        for value in offer.product.attributes[name]
        if value != own and not mentions(asked, value) and not mentions(value, own)
    ]


def refusing(pool: Pool) -> list[Offer]:
    return [
        offer
        for offer in with_options(pool)
        if (options := speaking_options(offer)) and all(unwanted(offer, [option]) for option in options)
    ]


def write_search(scene: Scene, offer: Anchor) -> Draft:
    options = speaking_options(offer)
    chosen = scene.rng.sample(options, min(len(options), SPARE))
    if not unwanted(offer, chosen):
        chosen = chosen[:1]
    name, refused = scene.rng.choice(unwanted(offer, chosen))
    required = [offer.name, *(value for _, value in chosen)]
    answer = " ".join(required)
    limit, words = length_limit(scene, answer)
    request = scene.fragment("requests", "refusing").format(
        name=offer.name,
        options=scene.language.pairs(chosen),
        attribute=name,
        refused=refused,
    )
    return Draft(
        slots={"request": request, "limit": words},
        answer=answer,
        check={"kind": "constraints", "contains": required, "excludes": [refused], **limit},
        offers=[offer],
        asked={"options": dict(chosen), "refused": refused},
    )


def priced(pool: Pool) -> list[Offer]:
    return [offer for offer in with_options(pool) if offer.variant.price is not None]


def write_filters(scene: Scene, offer: Anchor) -> Draft:
    options = offer.variant.options
    chosen = scene.rng.sample(options, min(len(options), scene.rng.choice((1, 2, 3))))
    budget = round_up(offer.price)
    price = plain_number(budget)
    fields = {
        "product": offer.name,
        "max_price": float(price) if "." in price else int(price),
        "options": dict(chosen),
    }
    request = scene.fragment("requests", "priced").format(
        name=offer.name,
        options=scene.language.pairs(chosen),
        budget=scene.money(budget),
    )
    return Draft(
        slots={
            "request": request,
            "keys": quoted(scene, list(fields)),
            "options": quoted(scene, [name for name, _ in chosen]),
        },
        answer=json.dumps(fields, ensure_ascii=False),
        check={"kind": "json"},
        offers=[offer],
        asked={"options": dict(chosen), "budget": budget},
    )


FORMS = (
    Form(name="search", kind="search", needs=("attributes",), anchors=refusing, write=write_search),
    Form(name="filters", kind="json", needs=("price", "attributes"), anchors=priced, write=write_filters),
)
