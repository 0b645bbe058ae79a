"""Numerical reasoning: discounts, change, what a budget buys, and what is in stock."""

from __future__ import annotations

from foresail.data.made.shop.amounts import fee_of, round_up, step_of
from foresail.data.made.shop.cards import Scene, Shown, card, variant_lines
from foresail.data.made.shop.form import Anchor, Draft, Form, number, with_options
from foresail.data.made.shop.table import Offer, Pool, Product, offers_of

DISCOUNTS, QUANTITIES = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75), range(2, 11)
LISTED = 8
PRICED = Shown(price=True)


def priced(pool: Pool) -> list[Offer]:
    return [offer for offer in with_options(pool) if offer.variant.price is not None]


def write_discount(scene: Scene, offer: Anchor) -> Draft:
    """Discount and quantity are such that nothing has to be rounded."""
    step = 100 if scene.pool.table.decimals == 0 else 1
    exact = [
        (discount, quantity)
        for discount in DISCOUNTS
        for quantity in QUANTITIES
        if offer.price * quantity * (100 - discount) % (100 * step) == 0
        and offer.price * quantity * discount % (100 * step) == 0
        and quantity * (100 - discount) != 100  # two at half the price: the answer would stand there
    ]
    discount, quantity = scene.rng.choice(exact)
    total = offer.price * quantity
    off = total * discount // 100
    return Draft(
        slots={
            "card": card(scene, offer, PRICED),
            "quantity": str(quantity),
            "discount": str(discount),
        },
        **number(scene, total - off, money=True),
        offers=[offer],
        asked={"quantity": quantity, "discount": discount},
        solution=scene.reason(
            "discount",
            price=scene.money(offer.price),
            quantity=str(quantity),
            total=scene.money(total),
            discount=str(discount),
            off=scene.money(off),
            rest=scene.money(total - off),
        ),
    )


def beside_others(pool: Pool) -> list[Offer]:
    offers = priced(pool)
    return offers if len({offer.name for offer in offers}) > 1 else []


def write_change(scene: Scene, offer: Anchor) -> Draft:
    others = scene.pool.others(offer.product, scene.rng)
    priced = (one for product in others for one in offers_of(product, product.variants) if one.variant.price)
    other = next(priced)
    first, second = scene.rng.randint(1, 5), scene.rng.randint(1, 5)
    one, two = offer.price * first, other.price * second
    paid = round_up(one + two + 1)
    return Draft(
        slots={
            "first": card(scene, offer, PRICED, "inline"),
            "second": card(scene, other, PRICED, "inline"),
            "count": str(first),
            "other_count": str(second),
            "paid": scene.money(paid),
        },
        **number(scene, paid - one - two, money=True),
        offers=[offer, other],
        asked={"counts": [first, second], "paid": paid},
        solution=scene.reason(
            "change",
            first=str(first),
            price=scene.money(offer.price),
            one=scene.money(one),
            second=str(second),
            other_price=scene.money(other.price),
            two=scene.money(two),
            total=scene.money(one + two),
            paid=scene.money(paid),
            rest=scene.money(paid - one - two),
        ),
    )


def write_budget(scene: Scene, offer: Anchor) -> Draft:
    """How many of it, with a delivery fee that is paid once."""
    fee = fee_of(offer.price, scene.rng.choice((3, 5, 8, 10)))
    count = scene.rng.randint(2, 9)
    least = offer.price * count + fee
    grid = min(step_of(least), offer.price // 200 * 100) or max(1, offer.price // 2)
    if scene.pool.table.decimals == 0:
        grid = max(100, grid // 100 * 100)
    highest = (least + offer.price - 1) // grid
    budget = grid * scene.rng.randint(-(-least // grid), highest)
    left = budget - fee
    return Draft(
        slots={"card": card(scene, offer, PRICED), "budget": scene.money(budget), "fee": scene.money(fee)},
        **number(scene, 100 * (left // offer.price), money=False),
        offers=[offer],
        asked={"budget": budget, "fee": fee},
        solution=scene.reason(
            "budget",
            budget=scene.money(budget),
            fee=scene.money(fee),
            left=scene.money(left),
            price=scene.money(offer.price),
            count=str(count),
            cost=scene.money(offer.price * count),
            more=str(count + 1),
            beyond=scene.money(offer.price * (count + 1)),
        ),
    )


def stocked(pool: Pool) -> list[tuple[Product, str, str]]:
    """A product and one of its values, where some variants have it and others do not."""
    return [
        (product, attribute, value)
        for product in pool.products
        if len(product.variants) >= 3 and all(variant.in_stock is not None for variant in product.variants)
        for attribute, its in product.attributes.items()
        if len(its) > 1
        for value in its
    ]


def write_stock(scene: Scene, anchor: Anchor) -> Draft:
    product, attribute, value = anchor
    having = [variant for variant in product.variants if variant.option(attribute) == value]
    lacking = [variant for variant in product.variants if variant.option(attribute) != value]
    having = scene.rng.sample(having, min(len(having), LISTED - 2))
    lacking = scene.rng.sample(lacking, min(len(lacking), max(2, LISTED - len(having))))
    listed = offers_of(product, scene.rng.sample(chosen := [*having, *lacking], len(chosen)))
    count = sum(variant.in_stock is True for variant in having)
    return Draft(
        slots={
            "name": product.name,
            "variants": variant_lines(scene, listed, Shown(brand=False, stock=True)),
            "attribute": attribute,
            "value": value,
        },
        **number(scene, 100 * count, money=False),
        offers=listed,
        asked={"attribute": attribute, "value": value},
        solution=scene.reason(
            "stock",
            attribute=attribute,
            value=value,
            having=str(len(having)),
            sold_out=str(len(having) - count),
            count=str(count),
        ),
    )


FORMS = (
    Form(name="discount", kind="amount", needs=("price", "attributes"), anchors=priced, write=write_discount),
    Form(
        name="change", kind="amount", needs=("price", "attributes"), anchors=beside_others, write=write_change
    ),
    Form(name="budget", kind="number", needs=("price", "attributes"), anchors=priced, write=write_budget),
    Form(name="stock", kind="number", needs=("stock", "attributes"), anchors=stocked, write=write_stock),
)
