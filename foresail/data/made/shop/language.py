"""A language of the made tasks: its words for products, its numbers, and its phrases.

    thai = read_language("th")
    thai.money(5088, "USD", 2)          "50.88 ดอลลาร์สหรัฐ"
    thai.localized(table)               the table with every word that `words/th.toml` knows translated

A word that the language's file does not know stays as the table has it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Any

from foresail.data.made.shop.table import Product, Table, Variant

LANGUAGES = ("en", "id", "ms", "th", "vi", "tl", "pt", "zh")

_MEASURE = re.compile(r"(\d[\d.]*(?:-\d+)?)[ -]?([^\d\s\-]+)")  # "10 hours", "5-25 lbs", "6.1-inch"


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """`words` and `phrases` are the contents of its two files."""

    code: str
    words: Mapping[str, Any]
    phrases: Mapping[str, Any]

    @property
    def marks(self) -> Mapping[str, str]:
        """Decimal point, separators and brackets: {"decimal": ",", "thousands": ".", "colon": ": ", …}."""
        marks: Mapping[str, str] = self.words["marks"]
        return marks

    def label(self, name: str) -> str:
        """label("price") -> "Price"."""
        return str(self.words["labels"][name])

    def number(self, hundredths: int, decimals: int = 2) -> str:
        """number(123450) -> "1,234.50"; with no decimals "1,235" is never rounded to: the value must be whole."""
        whole, fraction = divmod(hundredths, 100)
        digits = f"{whole:,}".replace(",", self.marks["thousands"])
        if not decimals:
            assert fraction == 0
            return digits
        return f"{digits}{self.marks['decimal']}{fraction:02d}"

    def money(self, hundredths: int, currency: str, decimals: int) -> str:
        pattern = self.words["currency"].get(currency, self.words["currency"]["other"])
        return str(pattern).format(self.number(hundredths, decimals), code=currency)

    def units(self, currency: str) -> tuple[str, ...]:
        """What may stand beside an amount in an answer."""
        written = str(self.words["currency"].get(currency, "")).replace("{}", "").strip()
        return tuple(dict.fromkeys(unit for unit in (written, currency, "US$", "$") if unit))

    def pair(self, attribute: str, value: str) -> str:
        """An option in running text: pair("size", "M") -> "size M"."""
        return self.marks["pair"].format(attribute=attribute, value=value)

    def pairs(self, options: Iterable[tuple[str, str]]) -> str:
        """pairs([("color", "blue"), ("size", "M")]) -> "color blue, size M"."""
        return self.join([self.pair(attribute, value) for attribute, value in options])

    def join(self, items: Sequence[str]) -> str:
        """join(["S", "M", "L"]) -> "S, M, L"."""
        return self.marks["list"].join(items)

    def localized(self, table: Table) -> Table:
        """Variants that read the same in this language are one, the first."""
        return replace(table, products=tuple(map(self._product, table.products)))

    def _product(self, product: Product) -> Product:
        variants: dict[tuple[tuple[str, str], ...], Variant] = {}
        for variant in product.variants:
            options = tuple(self._option(*option) for option in variant.options)
            variants.setdefault(tuple(sorted(options)), replace(variant, options=options))
        return replace(
            product,
            name=self._word("products", product.name),
            category=None if product.category is None else self._word("categories", product.category),
            variants=tuple(variants.values()),
        )

    def _option(self, attribute: str, value: str) -> tuple[str, str]:
        """The value as this attribute has it, "size:medium", else as any: "medium"."""
        values = self.words["values"]
        own = values.get(f"{attribute}:{value}".casefold()) or values.get(value.casefold())
        return self._word("attributes", attribute), own or self._measure(value)

    def _measure(self, value: str) -> str:
        """A number with a unit that the language's file knows: _measure("6.1-inch") -> "6,1 inci"."""
        measure = _MEASURE.fullmatch(value)
        pattern = measure and self.words["measures"].get(measure[2].casefold())
        if not measure or not pattern:
            return value
        return str(pattern).format(measure[1].replace(".", self.marks["decimal"]))

    def _word(self, kind: str, word: str) -> str:
        return str(self.words[kind].get(word.casefold(), word))


@lru_cache(maxsize=1)
def empty_values() -> frozenset[str]:
    """Values that say nothing by themselves, in any language: yes, no, none."""
    return frozenset(word for code in LANGUAGES for word in read_language(code).words["nothing"])


@lru_cache(maxsize=len(LANGUAGES))
def read_language(code: str) -> Language:
    return Language(code=code, words=_read("words", code), phrases=_read("phrases", code))


def _read(folder: str, code: str) -> dict[str, Any]:
    file = files(__package__).joinpath(folder, f"{code}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def plain_number(hundredths: int) -> str:
    """As JSON and answers have it: plain_number(5000) -> "50"; plain_number(5088) -> "50.88"."""
    return (
        format(Decimal(hundredths) / 100, "f").rstrip("0").rstrip(".")
        if hundredths % 100
        else str(hundredths // 100)
    )
