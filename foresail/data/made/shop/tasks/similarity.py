"""Product similarity: whether two listings are of one variant, and which of three is the closest to a given one."""

from __future__ import annotations

from dataclasses import replace

from foresail.data.made.shop.cards import LETTERS, Scene, Shown, card, lettered_offers
from foresail.data.made.shop.form import Anchor, Draft, Form, choice, siblings, with_siblings, yes_or_no
from foresail.data.made.shop.table import Offer, Pool

CHOICES = 3
BARE = Shown(brand=False)


def write_same(scene: Scene, offer: Anchor) -> Draft:
    """The second listing has its facts in another order; half of the time it is the nearest other variant."""
    same = scene.rng.random() < 0.5
    other = offer if same else nearest(scene, offer)
    options = scene.rng.sample(other.variant.options, len(other.variant.options))
    second = replace(other, variant=replace(other.variant, options=tuple(options)))
    if same:
        solution = scene.reason("same")
    else:
        name, ours, theirs = next(
            (name, value, has)
            for name, value in offer.variant.options
            if (has := other.variant.option(name)) != value
        )
        solution = scene.reason("not_same", attribute=name, value=ours, other=theirs or scene.label("none"))
    return Draft(
        slots={
            "first": card(scene, offer, Shown(), "inline"),
            "second": card(scene, second, Shown(), "inline"),
        },
        **yes_or_no(scene, same),
        offers=[offer, other],
        solution=solution,
    )


def shared(one: Offer, other: Offer) -> int:
    """How many options two offers have in common."""
    return len(set(one.variant.options) & set(other.variant.options))


def nearest(scene: Scene, offer: Offer) -> Offer:
    return max(
        (other for other in siblings(offer) if comparable(offer, other)),
        key=lambda other: (shared(offer, other), scene.rng.random()),
    )


def comparable(one: Offer, other: Offer) -> bool:
    """Of the same attributes, so that what differs is a value."""
    return {name for name, _ in one.variant.options} == {name for name, _ in other.variant.options}


def pairs_of_variants(pool: Pool) -> list[Offer]:
    return [
        offer for offer in with_siblings(pool) if any(comparable(offer, other) for other in siblings(offer))
    ]


def close_ones(pool: Pool) -> list[tuple[Offer, Offer]]:
    """A reference and its closest candidate, beside which two can stand that are less close."""
    return [
        (offer, other)
        for offer in with_siblings(pool, 3)
        for other in siblings(offer)
        if sum(shared(offer, third) < shared(offer, other) for third in siblings(offer)) >= CHOICES - 1
    ]


def write_closest(scene: Scene, anchor: Anchor) -> Draft:
    offer, closest = anchor
    less = [other for other in siblings(offer) if shared(offer, other) < shared(offer, closest)]
    listed = [closest, *scene.rng.sample(less, CHOICES - 1)]
    scene.rng.shuffle(listed)
    counts = [
        scene.reason("shared", letter=letter, count=str(shared(offer, one)))
        for letter, one in zip(LETTERS, listed, strict=False)
    ]
    texts = [line.partition(". ")[2] for line in lettered_offers(scene, listed, BARE).splitlines()]
    return Draft(
        slots={"card": card(scene, offer, BARE), "offers": lettered_offers(scene, listed, BARE)},
        **choice(texts, listed.index(closest)),
        offers=[offer, *listed],
        solution="\n".join(counts),
    )


FORMS = (
    Form(name="same", kind="yes_no", needs=("attributes",), anchors=pairs_of_variants, write=write_same),
    Form(name="closest", kind="choice", needs=("attributes",), anchors=close_ones, write=write_closest),
)
