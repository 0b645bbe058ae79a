"""A product table of made-up words, as large as wanted, for shop_lab.py --made-products.

Names and values are of syllables. Every product has values of its own, or values of a pool that all products share,
as colors and sizes are: in both cases a model that answers for a new product has read the row.
"""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from random import Random

from foresail.runlog.atomic import write_text

ATTRIBUTES = (
    "color", "size", "material", "finish", "pattern", "style", "scent", "flavour", "shape", "fabric", "lining",
    "closure", "coating", "grip", "mount", "filter", "texture", "weave", "frame", "handle",
)  # fmt: skip
CATEGORIES, BRANDS, VARIANTS = 8, 40, 4
ENDS = ("", "n", "r", "s", "l", "x")


def word(rng: Random, syllables: int) -> str:
    """word(rng, 2) -> "tolvex" or the like."""
    return "".join(
        rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") + rng.choice(ENDS) for _ in range(syllables)
    )


def write_made_table(path: Path, products: int, seed: int = 0, shared_values: int = 0) -> Path:
    """A CSV file; the same arguments give the same bytes. `shared_values` of each attribute; 0: of their own."""
    rng = Random(f"shop lab table {seed}")
    categories = [word(rng, 3) for _ in range(CATEGORIES)]
    brands = [word(rng, 2).capitalize() for _ in range(BRANDS)]
    pools = {name: [word(rng, 2) for _ in range(shared_values)] for name in ATTRIBUTES}
    text = StringIO()
    writer = csv.DictWriter(
        text, ["name", "brand", "category", "price", "stock", *ATTRIBUTES], restval="", lineterminator="\n"
    )
    writer.writeheader()
    for _ in range(products):
        name = f"{word(rng, 2)} {word(rng, 2)}".title()
        same = {"name": name, "brand": rng.choice(brands), "category": rng.choice(categories)}
        values = {
            name: rng.sample(pools[name], 3) if shared_values else [word(rng, 2) for _ in range(3)]
            for name in rng.sample(ATTRIBUTES, 3)
        }
        for _ in range(VARIANTS):
            options = {name: rng.choice(of) for name, of in values.items()}
            price, stock = rng.randint(200, 90000), rng.choice((0, 0, 3, 12))
            writer.writerow(same | {"price": f"{price / 100:.2f}", "stock": stock} | options)
    write_text(path, text.getvalue())
    return path
