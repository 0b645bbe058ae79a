"""Units: which words are units, and when two measures are the same.

A unit only decorates an answer: `5 cm` is right where `5` is asked. Where both sides name one they must
agree, after conversion if need be: `5 km` is `5000 m` and never `5 m`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from foresail.maths.lexicon.table import TABLE
from foresail.maths.notation.number_words import SCALES

CURRENCIES = {"€": "euros", "£": "pounds sterling", "¥": "yen", "₹": "rupees", "¢": "cents", "₽": "roubles",
              "₩": "won", "₫": "dong", "฿": "baht"}  # fmt: skip
CURRENCY_WORDS = frozenset(["USD", "EUR", "RMB", "CNY", "INR", "JPY", "Rs"])
SCALE_WORDS: dict[str, Fraction] = SCALES | {
    "百": Fraction(100), "千": Fraction(1000), "万": Fraction(10**4), "百万": Fraction(10**6),
    "亿": Fraction(10**8),
}  # fmt: skip
_METRIC: dict[str, tuple[str, Fraction | int]] = {
    "": ("", 1), "k": ("kilo", 1000), "d": ("deci", Fraction(1, 10)), "c": ("centi", Fraction(1, 100)),
    "m": ("milli", Fraction(1, 1000)),
}  # fmt: skip
_PREFIXES: dict[str, Fraction | int] = {
    "": 1, "n": Fraction(1, 10**9), "μ": Fraction(1, 10**6), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": 1000, "M": 10**6, "G": 10**9, "T": 10**12,
}  # fmt: skip
_SCIENTIFIC = {
    "N": "force", "J": "energy", "W": "power", "V": "voltage", "Hz": "frequency", "Pa": "pressure", "A": "current",
    "mol": "amount", "eV": "electron volt", "C": "charge", "F": "capacitance", "Ω": "resistance",
    "K": "temperature",
}  # fmt: skip
_BASE_UNITS = {
    "time": "s sec secs second seconds", "month": "month months",
    "money": "dollar dollars USD usd buck bucks", "money-EUR": "euro euros EUR",
    "money-CNY": "yuan RMB CNY", "money-INR": "rupee rupees INR Rs", "money-JPY": "yen JPY",
    "angle": "rad radian radians", "force": "newton newtons", "energy": "joule joules", "power": "watt watts",
    "voltage": "volt volts", "frequency": "hertz", "pressure": "pascal pascals", "resistance": "ohm ohms",
    "current": "ampere amperes amp amps", "temperature": "kelvin kelvins", "amount": "mole moles",
    "gallon": "gallon gallons gal", "cup": "cup cups", "unit": "unit units",
}  # fmt: skip


class Measure(NamedTuple):
    """How many of the dimension's base units it is, and the dimension as sorted (name, power) pairs."""

    factor: Fraction
    dimension: tuple[tuple[str, int], ...]


def _table() -> dict[str, tuple[Fraction, str]]:
    units: dict[str, tuple[Fraction, str]] = {}

    def add(names: str, factor: Fraction | int, dimension: str) -> None:
        for name in names.split():
            units[name] = (Fraction(factor), dimension)

    for short, (long, factor) in _METRIC.items():
        add(f"{short}m {long}meter {long}meters {long}metre {long}metres", factor, "length")
        add(f"{short}g {long}gram {long}grams", factor, "mass")
        add(f"{short}L {short}l {long}liter {long}liters {long}litre {long}litres", factor, "volume")
    for dimension, names in _BASE_UNITS.items():
        add(names, 1, dimension)
    for prefix, factor in _PREFIXES.items():
        for name, dimension in _SCIENTIFIC.items():
            add(f"{prefix}{name}", factor, dimension)
    add("inch inches", Fraction(254, 10000), "length")
    add("ft foot feet", Fraction(3048, 10000), "length")
    add("yd yds yard yards", Fraction(9144, 10000), "length")
    add("mi mile miles", Fraction(1609344, 1000), "length")
    add("nm nanometer nanometers", Fraction(1, 10**9), "length")
    add("lb lbs pound pounds", Fraction(45359237, 100000), "mass")
    add("oz ounce ounces", Fraction(45359237, 1600000), "mass")
    add("ton tons tonne tonnes", 10**6, "mass")
    add("min mins minute minutes", 60, "time")
    add("h hr hrs hour hours", 3600, "time")
    add("day days", 86400, "time")
    add("week weeks", 604800, "time")
    add("yr yrs year years", 12, "month")
    add("cent cents ¢", Fraction(1, 100), "money")
    add("ms millisecond milliseconds", Fraction(1, 1000), "time")
    add("μm micrometer micrometers", Fraction(1, 10**6), "length")
    add("acre acres", Fraction(40468564224, 10**7), "area")
    for row in TABLE:
        if row.meaning.startswith("unit "):
            units[row.word] = units[row.meaning.removeprefix("unit ")]
    return units


_MEASURES = _table()
# Letters that are variables far more often than units count as units only inside \text{…} or after a space.
_LETTERS_ONLY = frozenset(f"{prefix}{name}" for prefix in _PREFIXES for name in _SCIENTIFIC) - {"Hz", "mol"}
UNITS = frozenset(name for name in _MEASURES.keys() - _LETTERS_ONLY if len(name) > 1) | {"mph", "kph", "kmh"}

_SHORTHAND = {"mph": "mile/hour", "kph": "km/hour", "kmh": "km/hour"}
_FACTOR = re.compile(r"([^\s^/*]+)(?:\^(-?\d+))?")
_POWERS = {"square": 2, "cubic": 3}


def measure(name: str) -> Measure | None:
    """measure("cm^2") -> (1/10000, length²); measure("apples") -> None; measure("km/h") -> length/time."""
    name = _SHORTHAND.get(name, name)
    factor, powers = Fraction(1), dict[str, int]()
    for place, part in enumerate(re.split(r"/|\bper\b", name)):
        for word, power in _FACTOR.findall(part):
            if word in _POWERS:
                squared, changed = re.subn(rf"\b{word} (\S+)", rf"\1^{_POWERS[word]}", name, count=1)
                return measure(squared) if changed else None
            if word not in _MEASURES:
                return None
            size, dimension = _MEASURES[word]
            exponent = (int(power) if power else 1) * (1 if place == 0 else -1)
            if abs(exponent) > 9:
                return None
            factor *= size**exponent
            powers[dimension] = powers.get(dimension, 0) + exponent
    if powers.get("volume"):  # a litre is a cubic decimetre
        litres = powers.pop("volume")
        powers["length"] = powers.get("length", 0) + 3 * litres
        factor *= Fraction(1, 1000) ** litres
    return Measure(factor, tuple(sorted((name, power) for name, power in powers.items() if power)))


def is_unit(name: str) -> bool:
    """is_unit("km/h") -> True; is_unit("apples") -> False."""
    return bool(name) and measure(name) is not None


def same_noun(one: str, other: str) -> bool:
    """Units no table knows: same_noun("red apples", "apple") -> True; same_noun("apples/day", "apple") -> False."""
    parts, others = (re.split(r"\s*/\s*|\s+per\s+", name) for name in (one, other))
    return len(parts) == len(others) and all(map(_same_part, parts, others))


def _same_part(one: str, other: str) -> bool:
    first, second = _stems(one), _stems(other)
    if "^" in one + other:
        return first == second
    return (first <= second or second <= first) and not _DIMENSIONS & (first ^ second)


_DIMENSIONS = frozenset(["square", "cubic", "sq", "cu"])


def _stems(name: str) -> set[str]:
    """The words without their plural; what may be a symbol, such as MW and mW, keeps its case, and powers count."""
    stems = set()
    for word in re.findall(r"[^\W\d_]+(?:\^-?\w+)?", name):
        word = word.lower() if word.istitle() or word.islower() or len(word) > 3 else word
        if len(word) > 3 and word.endswith("s"):
            word = word.removesuffix("es") if word.endswith("ches") else word.removesuffix("s")
        stems.add(word)
    return stems
