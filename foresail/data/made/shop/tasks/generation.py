"""Product information generation: a title under constraints, and a listing in JSON from a note."""

from __future__ import annotations

import json

from foresail.data.made.shop.cards import Scene, Shown, card
from foresail.data.made.shop.constraints import length_limit, mentions, speaking_options
from foresail.data.made.shop.form import Anchor, Draft, Form, with_options
from foresail.data.made.shop.language import plain_number
from foresail.data.made.shop.table import Offer, Pool
from foresail.data.made.shop.tasks.extraction import advertisement, quoted


def titled(pool: Pool) -> list[Offer]:
    return [offer for offer in with_options(pool) if speaking_options(offer)]


def write_title(scene: Scene, offer: Anchor) -> Draft:
    options = speaking_options(offer)
    chosen = scene.rng.sample(options, min(len(options), 2))
    required = [offer.product.brand, offer.name, *(value for _, value in chosen)]
    required = [term for term in required if term is not None]
    answer = " ".join(required)
    # values of the same attributes that other variants have: naming them all would pass without reading
    unwanted = [
        value
        for name, own in chosen
        for value in offer.product.attributes[name]
        if value != own and not mentions(answer, value)
    ]
    limit, words = length_limit(scene, answer)
    return Draft(
        slots={
            "card": card(scene, offer, Shown(price=True)),
            "attributes": scene.language.join([name for name, _ in chosen]),
            "limit": words,
        },
        answer=answer,
        check={"kind": "constraints", "contains": required, "excludes": unwanted, **limit},
        offers=[offer],
        asked={"attributes": [name for name, _ in chosen]},
    )


def noted(pool: Pool) -> list[Offer]:
    return [offer for offer in with_options(pool) if offer.variant.price is not None]


def write_listing(scene: Scene, offer: Anchor) -> Draft:
    price = plain_number(offer.price)
    fields = {
        "title": offer.name,
        **({"brand": offer.product.brand} if offer.product.brand else {}),
        "price": float(price) if "." in price else int(price),
        "options": dict(offer.variant.options),
    }
    return Draft(
        slots={
            "note": advertisement(scene, offer) + scene.reason("costs", price=scene.money(offer.price)),
            "keys": quoted(scene, list(fields)),
            "options": quoted(scene, [name for name, _ in offer.variant.options]),
        },
        answer=json.dumps(fields, ensure_ascii=False),
        check={"kind": "json"},
        offers=[offer],
    )


FORMS = (
    Form(name="title", kind="title", needs=("attributes",), anchors=titled, write=write_title),
    Form(name="listing", kind="json", needs=("price", "attributes"), anchors=noted, write=write_listing),
)
