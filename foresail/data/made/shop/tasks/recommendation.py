"""Product recommendation: the variant that fits all wishes, and the cheapest that fits one."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.data.made.shop.amounts import round_up
from foresail.data.made.shop.cards import LETTERS, Scene, Shown, lettered_offers
from foresail.data.made.shop.form import Anchor, Draft, Form, choice, siblings, with_siblings
from foresail.data.made.shop.table import Offer, Pool

CHOICES = 4
SHOWN = Shown(price=True)


def priced(pool: Pool) -> list[Offer]:
    """Offers beside which others of their product stand, all with prices."""
    return [
        offer
        for offer in with_siblings(pool)
        if all(variant.price is not None for variant in offer.product.variants)
    ]


def shuffled(scene: Scene, offer: Offer, others: Sequence[Offer]) -> list[Offer]:
    listed = [offer, *others]
    scene.rng.shuffle(listed)
    return listed


def write_wishes(scene: Scene, offer: Anchor) -> Draft:
    """Wishes are added until no other offer has them all; the budget rules out the dearer ones."""
    others = siblings(offer)
    others = scene.rng.sample(others, min(CHOICES - 1, len(others)))
    budget = round_up(offer.price)
    left = [other for other in others if other.price <= budget]
    wishes: dict[str, str] = {}
    for attribute, value in scene.rng.sample(offer.variant.options, len(offer.variant.options)):
        if wishes and not left:
            break
        wishes[attribute] = value
        left = [other for other in left if other.variant.option(attribute) == value]
    listed = shuffled(scene, offer, others)
    reasons = [
        reason(scene, letter, one, wishes, budget) for letter, one in zip(LETTERS, listed, strict=False)
    ]
    return Draft(
        slots={
            "name": offer.name,
            "wishes": scene.language.pairs(wishes.items()),
            "budget": scene.money(budget),
            "offers": lettered_offers(scene, listed, SHOWN),
        },
        **choice(texts(scene, listed), listed.index(offer)),
        offers=listed,
        asked={"wishes": wishes, "budget": budget},
        solution="\n".join(reasons),
    )


def reason(scene: Scene, letter: str, offer: Offer, wishes: dict[str, str], budget: int) -> str:
    for attribute, value in wishes.items():
        if (has := offer.variant.option(attribute)) != value:
            has = has or scene.label("none")
            return scene.reason("differs", letter=letter, attribute=attribute, value=has, wanted=value)
    if offer.price > budget:
        return scene.reason(
            "too_dear", letter=letter, price=scene.money(offer.price), budget=scene.money(budget)
        )
    return scene.reason("fits", letter=letter)


def texts(scene: Scene, offers: Sequence[Offer]) -> list[str]:
    return [line.partition(". ")[2] for line in lettered_offers(scene, offers, SHOWN).splitlines()]


def cheapest_of_some(pool: Pool) -> list[tuple[Offer, str]]:
    """An offer and an attribute that another variant has in another value."""
    return [
        (offer, attribute)
        for offer in priced(pool)
        for attribute, value in offer.variant.options
        if any(other.variant.option(attribute) != value for other in siblings(offer))
    ]


def write_cheapest(scene: Scene, anchor: Anchor) -> Draft:
    """Beside the right offer stand dearer ones that fit, and others that do not, cheaper ones first."""
    offer, attribute = anchor
    value = offer.variant.option(attribute)
    fitting = [
        one for one in siblings(offer) if one.variant.option(attribute) == value and one.price > offer.price
    ]
    cheaper = [one for one in siblings(offer) if one.variant.option(attribute) != value]
    cheaper.sort(key=lambda one: (one.price > offer.price, scene.rng.random()))
    traps = cheaper[:2]
    others = [*traps, *scene.rng.sample(fitting, min(len(fitting), CHOICES - 1 - len(traps)))]
    others += [one for one in cheaper[2:] if one not in others][: CHOICES - 1 - len(others)]
    listed = shuffled(scene, offer, others)
    reasons = [
        scene.reason("has", letter=letter, attribute=attribute, value=value, price=scene.money(one.price))
        if one.variant.option(attribute) == value
        else scene.reason(
            "differs",
            letter=letter,
            attribute=attribute,
            value=one.variant.option(attribute) or scene.label("none"),
            wanted=value,
        )
        for letter, one in zip(LETTERS, listed, strict=False)
    ]
    return Draft(
        slots={
            "name": offer.name,
            "attribute": attribute,
            "value": str(value),
            "offers": lettered_offers(scene, listed, SHOWN),
        },
        **choice(texts(scene, listed), listed.index(offer)),
        offers=listed,
        asked={"attribute": attribute, "value": value},
        solution="\n".join([*reasons, scene.reason("cheapest", letter=LETTERS[listed.index(offer)])]),
    )


FORMS = (
    Form(name="wishes", kind="choice", needs=("price", "attributes"), anchors=priced, write=write_wishes),
    Form(
        name="cheapest",
        kind="choice",
        needs=("price", "attributes"),
        anchors=cheapest_of_some,
        write=write_cheapest,
    ),
)
