"""Product tables of chance, for tests of the made e-commerce tasks."""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

NAMES = (
    "lamp chair kettle scarf drum tent sofa mug clock rug bell fan cart pen mat hat box jar vase rope"
    " stool shelf torch pillow blanket bucket ladder hammer mirror basket"
).split()
VALUES = {
    "color": ("black", "blue", "red", "green", "amber"),
    "size": ("S", "M", "L", "XL"),
    "material": ("oak", "cotton", "steel", "glass"),
    "finish": ("matt", "glossy", "brushed"),
}
CATEGORIES = ("home", "tools", "textiles", "travel")
BRANDS = ("Ardo", "Bexil", "Cavo", "Dunro")


def write_table(path: Path, seed: int, products: int = 30, whole_prices: bool = False) -> Path:
    """Rows in any order, a few values missing."""
    rng = Random(f"shop table {seed}")
    rows = []
    for name in rng.sample(NAMES, products):
        brand, category = rng.choice(BRANDS), rng.choice(CATEGORIES)
        attributes = rng.sample(list(VALUES), rng.randint(2, 4))
        for _ in range(rng.randint(4, 9)):
            price = rng.randint(200, 90000) * (100 if whole_prices else 1)
            row = {
                "name": name,
                "brand": brand,
                "category": category,
                "price": f"{price // 100}.{price % 100:02d}",
            }
            row |= {"stock": str(rng.choice((0, 0, 3, 12)))}
            rows.append(row | {attribute: rng.choice(VALUES[attribute]) for attribute in attributes})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["name", "brand", "category", "price", "stock", *VALUES], restval="")
        writer.writeheader()
        writer.writerows(rng.sample(rows, len(rows)))
    return path
