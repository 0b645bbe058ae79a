"""A product table in memory: products, their variants, and what can be asked of them.

    table = read_table(Path("products.csv"), {})
    table.products[0].variants[0].options        (("color", "black"), ("size", "M"))

Prices are whole hundredths of the currency, so that sums are exact. What a table does not say is None.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

TEST_SHARE = 5  # one product in five is for testing
COLUMNS = ("brand", "category", "price", "stock", "attributes")  # that a task may need


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One thing that is sold. `id` is its own in the table, or its row's number."""

    id: str
    options: tuple[tuple[str, str], ...] = ()
    price: int | None = None
    in_stock: bool | None = None

    def option(self, attribute: str) -> str | None:
        return dict(self.options).get(attribute)


@dataclass(frozen=True, kw_only=True)
class Product:
    name: str
    split: str  # train or test
    brand: str | None = None
    category: str | None = None
    variants: tuple[Variant, ...] = ()

    @cached_property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """Its values by attribute, in the table's order: {"size": ("S", "M")}."""
        values: dict[str, dict[str, None]] = {}
        for variant in self.variants:
            for attribute, value in variant.options:
                values.setdefault(attribute, {})[value] = None
        return {attribute: tuple(of) for attribute, of in values.items()}


@dataclass(frozen=True, kw_only=True)
class Table:
    """`path` is the file as it was named. `invented`: columns that it does not have and that were made up."""

    path: str
    fingerprint: str
    currency: str
    products: tuple[Product, ...]
    invented: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.path).name

    @cached_property
    def decimals(self) -> int:
        """2, or 0 where all prices are whole, as in rupiah or dong."""
        return 2 if any(variant.price and variant.price % 100 for _, variant in self.variants()) else 0

    @cached_property
    def categories(self) -> tuple[str, ...]:
        return tuple(sorted({product.category for product in self.products if product.category}))

    @cached_property
    def columns(self) -> frozenset[str]:
        """Those of `COLUMNS` that some product has."""
        columns = set()
        for product, variant in self.variants():
            has = (product.brand, product.category, variant.price, variant.in_stock, variant.options or None)
            columns |= {column for column, value in zip(COLUMNS, has, strict=True) if value is not None}
        return frozenset(columns)

    def variants(self) -> Iterator[tuple[Product, Variant]]:
        return ((product, variant) for product in self.products for variant in product.variants)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A variant with its product: what a customer sees."""

    product: Product
    variant: Variant

    @property
    def name(self) -> str:
        return self.product.name

    @property
    def price(self) -> int:
        assert self.variant.price is not None
        return self.variant.price


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The products of a split. Rows of a split show no others."""

    table: Table
    products: tuple[Product, ...]

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        return tuple(Offer(product=p, variant=v) for p in self.products for v in p.variants)

    @cached_property
    def by_category(self) -> dict[str, dict[str, Product]]:
        """Products by their name, by category."""
        return self._grouped([product.category for product in self.products])

    @cached_property
    def by_brand(self) -> dict[str, dict[str, Product]]:
        return self._grouped([product.brand for product in self.products])

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(product.name for product in self.products)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(sorted({name for product in self.products for name in product.attributes}))

    def others(self, product: Product, rng: Random) -> Iterator[Product]:
        """Products of other names in a random order, each name once.

        The same name of another brand would have two right answers.
        """
        names = {product.name}
        for place in rng.sample(range(len(self.products)), len(self.products)):
            other = self.products[place]
            if other.name not in names:
                names.add(other.name)
                yield other

    def _grouped(self, keys: Sequence[str | None]) -> dict[str, dict[str, Product]]:
        groups: dict[str, dict[str, Product]] = {}
        for key, product in zip(keys, self.products, strict=True):
            if key is not None:
                groups.setdefault(key, {}).setdefault(product.name, product)
        return dict(sorted(groups.items()))


def split_of(name: str) -> str:
    """By the name alone, so that it stays the same when a table grows, and for equal names of two brands."""
    # crc32 is the same on every machine, unlike hash().
    return "test" if zlib.crc32(" ".join(name.casefold().split()).encode()) % TEST_SHARE == 0 else "train"


def offers_of(product: Product, variants: Sequence[Variant]) -> list[Offer]:
    return [Offer(product=product, variant=variant) for variant in variants]
