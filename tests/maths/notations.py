"""One value, many ways to write it: strategies for the property tests of the maths verifier.

`written(Fraction(7, 3))` draws "7/3", r"\\frac{7}{3}", r"2\\frac{1}{3}", r"2.\\overline{3}" and so on. Everything
here is computed with integers and fractions, so the values are certain and the verifier is what is tested.
"""

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

LONGEST_PERIOD = 12
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")

integers = st.one_of(st.integers(-99, 99), st.integers(-(10**7), 10**7), st.integers(-(10**60), 10**60))
fractions = st.builds(Fraction, st.integers(-500, 500), st.integers(1, 60))
decimals = st.builds(lambda n, k: Fraction(n, 10**k), st.integers(-(10**6), 10**6), st.integers(0, 8))
rationals = st.one_of(integers.map(Fraction), fractions, decimals)
offsets = st.one_of(
    fractions.filter(bool),
    st.builds(lambda sign, k: sign * Fraction(1, 10**k), st.sampled_from([-1, 1]), st.integers(0, 40)),
)


def written(value: Fraction) -> st.SearchStrategy[str]:
    """A notation that means exactly this rational number."""
    forms = fraction_forms(value) + mixed_forms(value) + recurring_forms(value)
    if is_terminating(value):
        forms += decimal_forms(value)
    if value.denominator == 1:
        forms += integer_forms(value.numerator)
    return st.sampled_from(forms)


def fraction_forms(value: Fraction) -> list[str]:
    sign, top, bottom = "-" if value < 0 else "", abs(value.numerator), value.denominator
    forms = [
        rf"{sign}\frac{{{top}}}{{{bottom}}}",
        rf"\dfrac{{{sign}{top}}}{{{bottom}}}",
        f"{sign}{top}/{bottom}",
    ]
    if top < 10 and bottom < 10:
        forms.append(rf"{sign}\frac{top}{bottom}")
    return forms


def mixed_forms(value: Fraction) -> list[str]:
    whole, rest = divmod(abs(value.numerator), value.denominator)
    if not whole or not rest:
        return []
    sign = "-" if value < 0 else ""
    forms = [rf"{sign}{whole}\frac{{{rest}}}{{{value.denominator}}}"]
    if rest < 100:  # "1 234/567" could be a fraction with a grouped numerator
        forms.append(f"{sign}{whole} {rest}/{value.denominator}")
    return forms


def recurring_forms(value: Fraction) -> list[str]:
    """0.1(6) for 1/6: long division until a remainder comes again."""
    whole, rest = divmod(abs(value.numerator), value.denominator)
    digits, seen = "", {}
    while rest and rest not in seen and len(digits) <= 2 * LONGEST_PERIOD:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, value.denominator)
        digits += str(digit)
    if not rest or rest not in seen or len(digits) - seen[rest] > LONGEST_PERIOD:
        return []
    sign, lead, period = "-" if value < 0 else "", digits[: seen[rest]], digits[seen[rest] :]
    return [rf"{sign}{whole}.{lead}\overline{{{period}}}", f"{sign}{whole}.{lead}({period})"]


def is_terminating(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def decimal_forms(value: Fraction) -> list[str]:
    plain = decimal(value)
    mantissa, exponent = value, 0
    while abs(mantissa) >= 10:
        mantissa, exponent = mantissa / 10, exponent + 1
    while mantissa and abs(mantissa) < 1:
        mantissa, exponent = mantissa * 10, exponent - 1
    return [
        plain,
        plain + ("0" if "." in plain else ".0"),
        plain.translate(FULL_WIDTH),
        plain.replace("-", "−"),
        rf"{decimal(100 * value)}\%",
        rf"{decimal(mantissa)}\times 10^{{{exponent}}}",
        rf"{decimal(mantissa)} \cdot 10^{{{exponent}}}",
    ]


def decimal(value: Fraction) -> str:
    """decimal(Fraction(-3, 8)) -> "-0.375" """
    places = 0
    while (value * 10**places).denominator > 1:
        places += 1
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    point = f".{digits[len(digits) - places :]}" if places else ""
    return ("-" if value < 0 else "") + digits[: len(digits) - places] + point


def integer_forms(value: int) -> list[str]:
    forms = [str(value), f"{value}.", f"({value})", rf"\text{{{value}}}", f"{{{value}}}"]
    if abs(value) >= 1000:
        forms += [f"{value:,}".replace(",", mark) for mark in (",", "{,}", r"\,", r",\!", r"\ ", " ", "'")]
    return forms


def plus(terms: Sequence[str]) -> str:
    """plus(["x", "-2"]) -> "x-2" """
    return "+".join(terms).replace("+-", "-")


@st.composite
def surds(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """(a, b, n, d) for (a + b sqrt(n)) / d, irrational."""
    radicand = draw(st.sampled_from([2, 3, 5, 6, 7, 10, 11, 13, 15, 17, 21, 30]))
    factor = draw(st.integers(-20, 20).filter(bool))
    return draw(st.integers(-50, 50)), factor, radicand, draw(st.integers(1, 12))


def written_surd(a: int, b: int, n: int, d: int) -> st.SearchStrategy[str]:
    sign = "-" if b < 0 else ""
    root, whole = rf"{b}\sqrt{{{n}}}", Fraction(a, d)
    inside = rf"{sign}\sqrt{{{b * b * n}}}"
    power = rf"{b}\cdot {n}^{{\frac{{1}}{{2}}}}"
    norm = a * a - b * b * n  # (a + b sqrt(n)) times its conjugate
    forms = [
        rf"\frac{{{plus([str(a), part])}}}{{{d}}}"
        for part in (root, inside, power, root.replace(r"\sqrt", "√"))
    ]
    forms += [rf"\frac{{{plus([root, str(a)])}}}{{{d}}}", f"({plus([str(a), inside])})/{d}"]
    conjugate = plus([str(a), rf"{-b}\sqrt{{{n}}}"])
    forms += [rf"\frac{{{norm}}}{{{d}({conjugate})}}"]
    forms += [plus([fraction_forms(whole)[0], rf"{sign}\frac{{{abs(b)}\sqrt{{{n}}}}}{{{d}}}"])]
    return st.sampled_from(forms)


def coefficients(roots: Sequence[int], lead: int) -> list[int]:
    """coefficients([1, 2], 1) -> [1, -3, 2]: the highest power first."""
    made = [lead]
    for root in roots:
        made = [a - root * b for a, b in zip([*made, 0], [0, *made], strict=True)]
    return made


def expanded(row: Sequence[int], letter: str = "x") -> str:
    degree = len(row) - 1
    terms = [f"{factor}{letter}^{{{degree - k}}}" for k, factor in enumerate(row[:-1]) if factor]
    return plus([*terms, str(row[-1])])


def factored(roots: Sequence[int], lead: int, letter: str = "x") -> str:
    return f"{lead}" + "".join(f"({plus([letter, str(-root)])})" if root else letter for root in roots)
