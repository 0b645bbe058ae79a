"""Dialogue understanding: what a customer wants, and what is ordered after a change of mind."""

from __future__ import annotations

import json

from foresail.data.made.shop.cards import LETTERS, Scene
from foresail.data.made.shop.form import Anchor, Draft, Form, choice, siblings, with_options
from foresail.data.made.shop.table import Offer, Pool
from foresail.data.made.shop.tasks.extraction import quoted
from foresail.data.made.shop.tasks.matching import unlike

INTENTS = ("tracking", "returns", "defect", "availability", "discount", "payment")
CHOICES = 4


def write_intent(scene: Scene, offer: Anchor) -> Draft:
    intent = scene.rng.choice(INTENTS)
    choices = [intent, *scene.rng.sample([one for one in INTENTS if one != intent], CHOICES - 1)]
    scene.rng.shuffle(choices)
    texts = [str(scene.language.phrases["intents"][one]) for one in choices]
    options = scene.language.pairs(offer.variant.options)
    lines = [
        customer(scene, scene.fragment("dialogue", "greeting")),
        agent(scene, scene.fragment("dialogue", "welcome")),
        customer(scene, scene.fragment("dialogue", "about").format(name=offer.name, options=options)),
        agent(scene, scene.fragment("dialogue", "listening")),
        customer(scene, scene.fragment("dialogue", intent)),
    ]
    return Draft(
        slots={
            "dialogue": "\n".join(lines),
            "choices": "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False)),
        },
        **choice(texts, choices.index(intent)),
        offers=[offer],
        asked={"intent": intent, "choices": choices},
    )


def customer(scene: Scene, words: str) -> str:
    return f"{scene.label('customer')}{scene.language.marks['colon']}{words}"


def agent(scene: Scene, words: str) -> str:
    return f"{scene.label('agent')}{scene.language.marks['colon']}{words}"


def changes(pool: Pool) -> list[tuple[Offer, str]]:
    """An offer, and the attribute in which the customer first wants another variant."""
    return [
        (offer, attribute)
        for offer in with_options(pool)
        for attribute in dict.fromkeys(name for other in siblings(offer) for name, _ in unlike(offer, other))
    ]


def write_order(scene: Scene, anchor: Anchor) -> Draft:
    offer, attribute = anchor
    options = dict(offer.variant.options)
    before = [value for value in offer.product.attributes[attribute] if value != options[attribute]]
    first = options | {attribute: scene.rng.choice(before)}
    wished, quantity = scene.rng.sample(range(1, 7), 2)
    recount = scene.rng.random() < 0.5
    if not recount:
        quantity = wished
    chosen = scene.language.pairs(first.items())
    lines = [
        customer(
            scene,
            scene.fragment("dialogue", "ordering").format(name=offer.name, options=chosen, quantity=wished),
        ),
        agent(scene, scene.fragment("dialogue", "noted")),
        customer(
            scene,
            scene.fragment("dialogue", "change").format(
                attribute=attribute, value=options[attribute], before=first[attribute]
            ),
        ),
    ]
    if recount:
        lines += [
            agent(scene, scene.fragment("dialogue", "changed")),
            customer(scene, scene.fragment("dialogue", "recount").format(quantity=quantity)),
        ]
    fields = {"product": offer.name, "quantity": quantity, "options": options}
    return Draft(
        slots={
            "dialogue": "\n".join(lines),
            "keys": quoted(scene, list(fields)),
            "options": quoted(scene, list(options)),
        },
        answer=json.dumps(fields, ensure_ascii=False),
        check={"kind": "json"},
        offers=[offer],
        asked={"first": first, "wished": wished, "quantity": quantity},
    )


FORMS = (
    Form(name="intent", kind="choice", needs=("attributes",), anchors=with_options, write=write_intent),
    Form(name="order", kind="json", needs=("attributes",), anchors=changes, write=write_order),
)
