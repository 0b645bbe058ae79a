"""Reads a product table: CSV, JSONL, JSON or parquet with a row for each variant, or tau2's retail database.

    read_table(Path("products.csv"), {"title": "Produktname", "attributes": "Farbe+Größe"})

Columns are found by their usual names, or named by the source's options. Rows of one name and brand are variants of
one product. A row that says the same as an earlier one of its product, but for its price, is left out. So are rows
that cannot be read, such as one without a name, and a warning counts them; where they are many, it is an error.
"""

from __future__ import annotations

import csv
import hashlib
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from foresail.data.files import excerpt, explaining_damage, open_bytes
from foresail.data.made.shop.table import Product, Table, Variant, split_of
from foresail.data.made.shop.tau2 import read_tau2
from foresail.data.rows import explain_missing, read_rows

NAMES: dict[str, tuple[str, ...]] = {
    "title": ("title", "name", "product_name", "product_title", "product"),
    "brand": ("brand", "brand_name", "manufacturer"),
    "category": ("category", "category_name", "product_type", "product_category", "department"),
    "price": ("price", "sale_price", "unit_price", "amount"),
    "stock": ("stock", "available", "in_stock", "availability", "quantity"),
    "id": ("id", "item_id", "sku", "product_id", "asin"),
}
OPTIONS = (*NAMES, "attributes", "currency")  # of a source
LONGEST_NAME, LONGEST_VALUE = 120, 40  # characters; longer ones are no names and no values
YES, NO = {"true", "yes", "in stock", "available", "y"}, {"false", "no", "out of stock", "sold out", "n", ""}
TAU2 = ("db.json", "db.json.xz", "db.json.gz")
LARGEST_PRICE = 10**12
MOST_BAD = 0.1  # of the rows; more are not a few slips, but another form than this

log = logging.getLogger(__name__)

Columns = Mapping[str, Any]


@lru_cache(maxsize=4)
def _read(path: Path, options: tuple[tuple[str, str], ...], fingerprint: str) -> Table:
    named = dict(options)
    currency = named.pop("currency", "USD")
    if path.name in TAU2:
        if named:
            raise ValueError(
                f"{path} is tau2's retail database, whose columns are known; leave out {', '.join(named)}"
            )
        return read_tau2(path, fingerprint, currency)
    rows = list(_rows(path))
    left_out = [row for _, row in rows if isinstance(row, BadRow)]
    _check_share(left_out, len(rows))
    columns = _find_columns(path, [row for _, row in rows if not isinstance(row, BadRow)], named)
    products: dict[tuple[str, str | None, str | None], dict[tuple[Any, ...], Variant]] = {}
    for number, (place, row) in enumerate(rows, start=1):
        if isinstance(row, BadRow):
            continue
        try:
            name = _name(place, row, columns["title"])
            variant = _variant(place, row, columns, number)
        except BadRow as error:
            left_out.append(error)
            continue
        key = (name, _text(row, columns.get("brand")), _text(row, columns.get("category")))
        products.setdefault(key, {}).setdefault(tuple(sorted(variant.options)), variant)
    _check_share(left_out, len(rows))
    if left_out:
        log.warning(
            "%s: %s of %s rows cannot be read and are left out; the first: %s",
            path,
            f"{len(left_out):,}",
            f"{len(rows):,}",
            left_out[0],
        )
    return Table(
        path=str(path),
        fingerprint=fingerprint,
        currency=currency,
        products=tuple(
            Product(
                name=name,
                split=split_of(name),
                brand=brand,
                category=category,
                variants=tuple(variants.values()),
            )
            for (name, brand, category), variants in products.items()
        ),
    )


class BadRow(ValueError):
    """A row that cannot be used; the table's others may be."""


def _check_share(left_out: Sequence[BadRow], count: int) -> None:
    """Many rows that cannot be read are not a few slips."""
    if len(left_out) > MOST_BAD * count:
        others = f"; so are {len(left_out) - 1:,} other rows of {count:,}" if left_out[1:] else ""
        raise ValueError(f"{left_out[0]}{others}")


def _name(place: str, row: Columns, column: str) -> str:
    if (name := _text(row, column, LONGEST_NAME)) is None:
        raise BadRow(f"{place}: {column} is empty or longer than {LONGEST_NAME} characters; correct it")
    return name


def read_table(path: Path, options: Mapping[str, str]) -> Table:
    if not path.is_file():
        raise FileNotFoundError(f"shop-tasks: {explain_missing(path)}")
    return _read(path, tuple(sorted(options.items())), fingerprint_of(path))


def fingerprint_of(path: Path) -> str:
    """Of the whole file: 16 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=8)
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _rows(path: Path) -> Iterator[tuple[str, Columns | BadRow]]:
    """Each row with its place, "products.csv:2"."""
    stem = path.name.removesuffix(".gz").removesuffix(".xz")
    if not stem.endswith((".csv", ".tsv")):
        yield from ((row.place, row.columns) for row in read_rows(path))
        return
    with explaining_damage(path), open_bytes(path) as binary:
        text = TextIOWrapper(binary, encoding="utf-8-sig", newline="")
        reader = csv.DictReader(text, delimiter="\t" if stem.endswith(".tsv") else ",", strict=True)
        empty = True
        try:
            for row in reader:
                empty = False
                place = f"{path}:{reader.line_num}"
                if None in row or None in row.values():
                    fields = len(reader.fieldnames or ())
                    yield (
                        place,
                        BadRow(
                            f"{place}: not as many fields as the {fields} columns of the first line; correct it"
                        ),
                    )
                else:
                    yield place, row
        except csv.Error as error:
            raise ValueError(f"{path}:{reader.line_num}: not CSV ({error}); correct the file") from error
    if empty:
        raise ValueError(f"{path} is empty; it needs a line of column names and a row for each product")


def _find_columns(path: Path, rows: Sequence[Columns], named: Mapping[str, str]) -> dict[str, Any]:
    """The column of each noun, and the list of those that hold attributes."""
    known = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, Any] = {}
    for noun, usual in NAMES.items():
        column = named.get(noun) or next(
            (name for usual_name in usual for name in known if name.casefold() == usual_name), None
        )
        if column is not None:
            columns[noun] = _known(path, noun, column, known)
    if "title" not in columns:
        raise ValueError(
            f"{path} has no column title or name; name the one with the product's name with title=…; its columns "
            f"are {', '.join(known)}"
        )
    taken = set(columns.values())
    if "attributes" in named:
        columns["attributes"] = [
            _known(path, "attributes", name, known) for name in named["attributes"].split("+")
        ]
    else:
        columns["attributes"] = [name for name in known if name not in taken]
    return columns


def _known(path: Path, noun: str, name: str, known: list[str]) -> str:
    if name in known:
        return name
    near = get_close_matches(name, known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"its columns are {', '.join(known)}"
    raise ValueError(f"{path} has no column {name!r}, which {noun}=… names; {hint}")


def _variant(place: str, row: Columns, columns: Mapping[str, Any], number: int) -> Variant:
    options: dict[str, str] = {}
    for column in columns["attributes"]:
        inner = row.get(column)
        named = inner if isinstance(inner, Mapping) else {column: inner}
        for attribute, value in named.items():
            if (
                (text := _plain(value)) is not None
                and len(text) <= LONGEST_VALUE
                and is_safe(f"{attribute}{text}")
            ):
                options[str(attribute).strip()] = text
    id = row.get(columns["id"]) if "id" in columns else None
    return Variant(
        id=str(number) if id is None else str(id),
        options=tuple(options.items()),
        price=_price(place, row, columns.get("price")),
        in_stock=_stock(place, row, columns.get("stock")),
    )


def is_safe(text: str) -> bool:
    """Whether a list or a card can hold the text without being read in two ways."""
    return not re.search(r"[;:|{}\n\r\t\\]", text)


def _plain(value: Any) -> str | None:
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else None
    if isinstance(value, float) and math.isnan(value):  # as pandas writes an empty cell
        return None
    return " ".join(str(value).split()) or None


def _text(row: Columns, column: str | None, longest: int = LONGEST_VALUE) -> str | None:
    text = None if column is None else _plain(row.get(column))
    if text is None or len(text) > longest:
        return None
    return re.sub(r"[;:|{}\\]", " ", text).strip() or None


def _price(place: str, row: Columns, column: str | None) -> int | None:
    """In hundredths: 50.88, "50.88", "$1,234.50" -> 123450."""
    value = None if column is None else row.get(column)
    if isinstance(value, float) and abs(value - round(value, 2)) < 1e-6 * abs(value):
        value = f"{value:.2f}"  # 19.99 in 32 bits is 19.989999771
    if (text := _plain(value)) is None:
        return None
    digits = re.fullmatch(r"[^\d\-.,]*(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)[^\d\-.,]*", text)
    try:
        price = Decimal(digits[1].replace(",", "")) * 100 if digits else Decimal(-1)
    except InvalidOperation:
        price = Decimal(-1)
    if not 0 < price < LARGEST_PRICE or price != price.to_integral_value():
        raise BadRow(
            f"{place}: {column} is {excerpt(text)}, which is no price; write a number above 0 with a decimal point "
            "and at most two decimals, or leave it empty"
        )
    return int(price)


def _stock(place: str, row: Columns, column: str | None) -> bool | None:
    if column is None or (_plain(row.get(column)) is None and not isinstance(row.get(column), str)):
        return None
    text = str(row[column]).strip().casefold()
    if text in YES | NO:
        return text in YES
    try:
        return float(text) > 0
    except ValueError:
        raise BadRow(
            f"{place}: {column} is {excerpt(text)}; write true or false, or the number of items in stock"
        ) from None
