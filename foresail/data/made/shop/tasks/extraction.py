"""Attribute extraction: from an advertisement in sentences to JSON, or to one value."""

from __future__ import annotations

import json

from foresail.data.made.shop.cards import Scene
from foresail.data.made.shop.form import Anchor, Draft, Form, text, with_options
from foresail.data.made.shop.table import Offer, Pool

MISSING = 0.5  # share of rows that ask for something the text does not say


def advertisement(scene: Scene, offer: Offer) -> str:
    """All options in running text, attributes that have a phrase of their own by it: "It is made of cotton."."""
    phrases = scene.language.phrases["features"]
    features = []
    for attribute, value in scene.rng.sample(offer.variant.options, len(offer.variant.options)):
        pattern = phrases["attributes"].get(attribute) if value not in scene.language.words["bare"] else None
        features.append((pattern or phrases["other"]).format(attribute=attribute, value=value))
    opening = "with_brand" if offer.product.brand else "without_brand"
    frame = scene.fragment("advertisements", opening)
    return frame.format(name=offer.name, brand=offer.product.brand, features=scene.language.join(features))


def write_json(scene: Scene, offer: Anchor) -> Draft:
    options = dict(offer.variant.options)
    keys = scene.rng.sample(list(options), min(len(options), scene.rng.choice((2, 3))))
    fields: dict[str, str | None] = {key: options[key] for key in keys}
    foreign = [name for name in scene.pool.attributes if not any(near(name, own) for own in options)]
    if foreign and scene.rng.random() < MISSING:
        fields[scene.rng.choice(foreign)] = None
    fields = dict(scene.rng.sample(list(fields.items()), len(fields)))
    return Draft(
        slots={"text": advertisement(scene, offer), "keys": quoted(scene, list(fields))},
        answer=json.dumps(fields, ensure_ascii=False),
        check={"kind": "json"},
        offers=[offer],
        asked={"keys": list(fields)},
    )


def near(one: str, other: str) -> bool:
    """Whether one name is a part of the other, as color and frame color: it would be asked for by half."""
    return one.casefold() in other.casefold() or other.casefold() in one.casefold()


def quoted(scene: Scene, keys: list[str]) -> str:
    return scene.language.join([json.dumps(key, ensure_ascii=False) for key in keys])


def facts(pool: Pool) -> list[tuple[Offer, str]]:
    return [(offer, name) for offer in with_options(pool, 2) for name, _ in offer.variant.options]


def write_value(scene: Scene, anchor: Anchor) -> Draft:
    offer, attribute = anchor
    value = dict(offer.variant.options)[attribute]
    return Draft(
        slots={"text": advertisement(scene, offer), "attribute": attribute},
        **text(scene, value),
        offers=[offer],
        asked={"attribute": attribute},
    )


FORMS = (
    Form(
        name="json",
        kind="json",
        needs=("attributes",),
        anchors=lambda pool: with_options(pool, 2),
        write=write_json,
    ),
    Form(name="value", kind="text", needs=("attributes",), anchors=facts, write=write_value),
)
