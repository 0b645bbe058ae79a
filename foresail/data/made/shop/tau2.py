"""tau2-bench's retail database as a product table.

It has names, variants with options, prices and availability. It has no brands and no categories: `tables/tau2.toml`
makes them up, and rows say so (`made.invented`).
"""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from foresail.data.files import explaining_damage, open_bytes
from foresail.data.made.shop.table import Product, Table, Variant, split_of

RENAMED = {"brand": "line", "bagged/bagless": "dust collection"}  # the first would be a second brand


def read_tau2(path: Path, fingerprint: str, currency: str) -> Table:
    with explaining_damage(path), open_bytes(path) as file:
        try:
            products: dict[str, Any] = json.load(file)["products"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} has no products ({type(error).__name__}: {error}); it is read as tau2's retail database, "
                "{products: {id: {name, variants}}}: give a table of your own another name"
            ) from error
    invented = tomllib.loads(files(__package__).joinpath("tables/tau2.toml").read_text(encoding="utf-8"))
    return Table(
        name=path.name,
        fingerprint=fingerprint,
        currency=currency,
        products=tuple(_product(product, invented.get(product["name"], {})) for product in products.values()),
        invented=("brand", "category"),
    )


def _product(product: dict[str, Any], invented: dict[str, str]) -> Product:
    order = list(dict.fromkeys(name for one in product["variants"].values() for name in one["options"]))
    return Product(
        name=product["name"],
        split=split_of(product["name"]),
        brand=invented.get("brand"),
        category=invented.get("category"),
        variants=tuple(_variant(variant, order) for variant in product["variants"].values()),
    )


def _variant(variant: dict[str, Any], order: list[str]) -> Variant:
    options = variant["options"]
    return Variant(
        id=variant["item_id"],
        options=tuple((RENAMED.get(name, name), options[name]) for name in order if name in options),
        price=round(variant["price"] * 100),
        in_stock=variant["available"],
    )
