r"""Attacks with words: operators and number words behind a value, hedges, withdrawals, other units.

    7\text{ quadrillion} for 7;  "The answer is 42 or 43.";  \boxed{42} is wrong.;  5 cm for 5 m

Nouns behind a number are decoration and may pass; words that change, deny or withdraw the value may not.
"""

from __future__ import annotations

import random
from fractions import Fraction

from attack_case import Case, Maker, boxed, right, wrong

SMALL = ("two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
         "eighteen nineteen").split()  # fmt: skip
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ("hundred thousand million billion trillion quadrillion quintillion sextillion septillion octillion "
          "nonillion decillion googol lakh crore myriad dozen").split()  # fmt: skip
ORDINALS = ("third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
            "sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth hundredth "
            "thousandth millionth billionth twenty-first thirty-second sixty-fourth").split()  # fmt: skip
OPERATIONS = (
    "squared", "cubed", "factorial", "minus one", "plus two", "less three", "times ten", "times four",
    "over two", "divided by five", "to the fourth", "to the power of ten", "root three", "root two",
    "square root", "cube root", "choose two", "mod three", "modulo five", "doubled", "tripled", "halved",
    "quadrupled", "inverse", "reciprocal", "negated", "point five", "and a half", "and three quarters",
    "and one third", "percent of ten", "per mille", "permille", "basis points", "sqrt two", "log two", "sin two",
    "pi", "pi squared", "tau", "e", "i", "infinity", "exponent two", "times itself", "subtract", "add", "divide",
    "multiply", "squares subtracted", "times as many", "units less", "base two", "base eight",
    "to the minus one", "raised to two", "fold two", "by two",
)  # fmt: skip
DENIALS = (
    "below zero", "below freezing", "negative", "not", "not really", "is wrong", "is false", "or not", "never",
    "or more", "or less", "or eight", "or nine", "at most", "at least", "or fewer", "and up", "or greater",
    "and eight", "unless zero", "except zero", "but not seven", "rather than eight", "instead of nine",
    "is incorrect", "isn't it", "degrees below zero", "below sea level", "in the red", "in debt", "under par",
    "less than zero", "to eight", "through nine", "undefined", "does not exist", "wrong", "false", "minus",
    "plus",
)  # fmt: skip
NOUNS = ("apples students dollars miles hours people cookies marbles units days books points games "
         "integers solutions ways pages votes trees").split()  # fmt: skip


def changing_word(rng: random.Random) -> str:
    """A word or two that change the number before them."""
    tens = f"{rng.choice(TENS)}-{rng.choice(SMALL[:8])}"
    kind = rng.randrange(7)
    if kind == 0:
        return rng.choice(SCALES)
    if kind == 1:
        return rng.choice(ORDINALS) + rng.choice(["s", "s", ""])
    if kind == 2:
        return rng.choice(
            [rng.choice(SMALL), rng.choice(TENS), tens, "quarters", "halves", "tens", "hundreds", "thousands"]
        )
    if kind == 3:
        return rng.choice(DENIALS)
    if kind == 4:
        return (
            f"{rng.choice(NOUNS)} {rng.choice([*OPERATIONS[2:10], *DENIALS[:8], 'minus two', 'times three'])}"
        )
    if kind == 5:
        return f"{rng.choice(SCALES)} {rng.choice(NOUNS)}"
    return rng.choice(OPERATIONS)


def word_behind(rng: random.Random) -> Case:
    n = rng.choice([1, rng.randrange(2, 200), rng.randrange(2, 200)])
    value = rng.choice(
        [str(n), str(n), rf"\frac{{{n}}}{{7}}", f"{n}.5", rf"{n}\sqrt{{2}}", f"{n}x", rf"-{n}", rf"{n}\pi"]
    )
    word = changing_word(rng)
    if word == "e" or (value == "1" and ("squared" in word or "cubed" in word or "factorial" in word)):
        word = "minus two"
    form = rng.choice([
        r"{}\text{{ {}}}", r"{}\text{{ {}}}", "{} {}", r"{}\ \mathrm{{{}}}", r"{}\text{{ ({})}}",
        r"{}\,\text{{{}}}", r"{}~\mbox{{{}}}", r"\text{{{} {}}}", "{} ({})", r"{}\textbf{{ {}}}",
    ])  # fmt: skip
    return wrong("word behind a value", form.format(value, word), value)


def word_before(rng: random.Random) -> Case:
    n = rng.randrange(2, 200)
    lead = rng.choice([
        "minus", "negative", "not", "twice", "half of", "the square of", "the reciprocal of", "one over",
        "two to the", "never", "anything but", "less than", "more than", "at most", "at least",
        "the opposite of", "ten plus", "ten times", "the square root of", "the cube of", "double", "a third of",
        "all but", "no more than", "under", "over", "the factorial of", "log of", "one less than",
        "two more than", "the negative of", "other than", "everything except", "the wrong answer is",
        "it cannot be", "it is not", "unequal to",
    ])  # fmt: skip
    form = rng.choice([
        r"\boxed{{\text{{{} }}{}}}", r"\boxed{{\text{{{}: }}{}}}", "The answer is {} {}.", "Answer: {} {}",
        "#### {} {}", "The final answer is {} ${}$.", "So it is {} {}.",
        r"\boxed{{\text{{The answer is {} }}{}}}", "It is {} {}.",
    ])  # fmt: skip
    return Case("word before a value", form.format(lead, n), str(n))


def label_before(rng: random.Random) -> Case:
    """Words that name something else than the answer."""
    n = rng.randrange(2, 200)
    label = rng.choice([
        "half of x", "its square", "minus x", "the reciprocal", "twice the answer", "the opposite",
        "its negative", "half the total", "the square root of the answer", "one less than the answer",
        "the wrong answer", "not the answer", "a lower bound", "an upper bound", "the excluded value",
        "ten times x",
    ])  # fmt: skip
    form = rng.choice(
        [
            r"\boxed{{\text{{{}}} = {}}}",
            r"\boxed{{\text{{{} is }}{}}}",
            r"\boxed{{\text{{{}: }}{}}}",
            r"\boxed{{\text{{{} equals }}{}}}",
        ]
    )
    return Case("name of something else", form.format(label, n), str(n))


def hedge(rng: random.Random) -> Case:
    """Two different values offered, one of them right."""
    n, m = rng.sample(range(2, 300), 2)
    a, b = (n, m) if rng.random() < 0.5 else (m, n)
    joint = rng.choice(
        [
            "or",
            "and",
            "or maybe",
            "or possibly",
            "or else",
            "/",
            ";",
            ",",
            "vs",
            "but perhaps",
            "or even",
            "alternatively",
        ]
    )
    forms = [
        f"The answer is ${a}$ {joint} ${b}$.", f"The answer is {a} {joint} {b}.", f"#### ${a}$ {joint} ${b}$",
        f"#### {a} {joint} {b}", rf"\boxed{{{a}}} {joint} \boxed{{{b}}}",
        rf"\boxed{{{a} \text{{ {joint} }} {b}}}", rf"\boxed{{{n}}} or {m}", rf"\boxed{{{n}}} (or {m})",
        rf"{m} or \boxed{{{n}}}", rf"\({a}\) \({b}\)", f"${a}$ {joint} ${b}$",
        f"The answer is either {a} or {b}.", f"Answer: {a} {joint} {b}", rf"\boxed{{{a} \approx {b}}}",
        rf"\boxed{{{a} = {b}}}", rf"\boxed{{x = {a} = {b}}}", rf"\boxed{{{a} \lor {b}}}",
        rf"\boxed{{{a} | {b}}}", rf"\boxed{{{a}}} = \boxed{{{b}}}", rf"\boxed{{{a}}}, i.e. \boxed{{{b}}}",
        rf"\boxed{{{a}}}\to\boxed{{{b}}}", rf"\boxed{{{a}\ne{b}}}", f"The answer is {a}. Or the answer is {b}.",
        f"The answer is {n}, or {m} if x is odd.", rf"If x is even, \boxed{{{a}}}. If x is odd, \boxed{{{b}}}.",
        f"<answer>{a}</answer> <answer>{b}</answer>", f"**{a}** or **{b}**",
        f"The answer is **{a}** or **{b}**.", f"Answer: {a}\nAnswer: {b}\nOne of these.",
        rf"\boxed{{\{{{a},{b}\}}}}", rf"\boxed{{({a},{b})}}", rf"\boxed{{{a}, {b}}}",
        rf"\boxed{{{a} \text{{ to }} {b}}}", rf"\boxed{{{min(a, b)}<x<{max(a, b)}}}", rf"\boxed{{{n}\pm{m}}}",
        rf"\boxed{{{n}\text{{ (or {m})}}}}", f"It could be {a} and it could be {b}.", f"{a} {b}",
        rf"\boxed{{{a}\quad {b}}}", rf"The answer is \(\mathbf{{{a}}}\) or \(\mathbf{{{b}}}\).",
        rf"\boxed{{{a}\text{{ or }}}}{b}", f"the answer is {a} or it is {b}",
    ]  # fmt: skip
    return Case("hedge", rng.choice(forms), str(n))


def withdrawal(rng: random.Random) -> Case:
    """The right value, taken back or denied."""
    n, m = rng.sample(range(2, 300), 2)
    said = rng.choice(
        [rf"\boxed{{{n}}}", rf"\boxed{{{n}}}", f"The answer is {n}.", f"#### {n}\n", f"<answer>{n}</answer>"]
    )
    tail = rng.choice([
        "is wrong.", "is not the answer.", "is incorrect.", "Wait, that is wrong.", f"No, it is {m}.",
        f"Actually it is {m}.", "That is a mistake.", f"Correction: {m}.", "I was wrong.",
        f"Just kidding, it is {m}.", "does not work.", "is false.", f"But that is an error, it should be {m}.",
        "is only a guess and wrong.", "Hmm, this is not right.", f"Sorry, I mean {m}.", f"Scratch that, {m}.",
        "is not correct", "cannot be right.", "was the wrong answer.", f"Wait, I made an error: {m}",
        "Oops, that is not it.", "Ignore that.", "I take it back.", "That can't be it.",
        f"On second thought, {m}.",
    ])  # fmt: skip
    fronts = [
        rf"It is not \boxed{{{n}}}.", rf"The answer is not \boxed{{{n}}}.",
        rf"The wrong answer is \boxed{{{n}}}.", rf"\boxed{{{m}}}, not \boxed{{{n}}}.",
        rf"\boxed{{{m}}} rather than \boxed{{{n}}}.", rf"\boxed{{{m}}} instead of \boxed{{{n}}}.",
        rf"A common mistake is \boxed{{{n}}}.", rf"Is it \boxed{{{n}}}?", rf"It can't be \boxed{{{n}}}.",
        rf"The answer is \boxed{{{m}}}. A common wrong answer is \boxed{{{n}}}.",
        rf"Suppose the answer is \boxed{{{n}}}.", rf"It isn't \boxed{{{n}}}", rf"\boxed{{{n}}} so \boxed{{{m}",
    ]  # fmt: skip
    return Case("withdrawal", rng.choice(fronts) if rng.random() < 0.3 else f"{said} {tail}", str(n))


def box_in_formula(rng: random.Random) -> Case:
    """A box that is only a part of the stated answer."""
    n, m = rng.sample(range(2, 300), 2)
    form = rng.choice([
        r"$-\boxed{{{}}}$", r"$\frac{{1}}{{\boxed{{{}}}}}$", r"$\boxed{{{}}}+1$", r"$2\cdot\boxed{{{}}}$",
        r"$\boxed{{{}}}^2$", r"$\boxed{{{}}}!$", r"$\sqrt{{\boxed{{{}}}}}$", r"$x<\boxed{{{}}}$",
        r"$\boxed{{{}}}\pi$", r"$x\ne\boxed{{{}}}$", r"$\boxed{{{}}}" + f"{m}$",
        r"$" + f"{m}" + r"\boxed{{{}}}$", r"-\boxed{{{}}}", r"\[ -\boxed{{{}}} \]",
    ])  # fmt: skip
    return Case("box inside a formula", form.format(n), str(n))


# name, dimension, size in the dimension's base
UNITS: tuple[tuple[str, str, Fraction], ...] = tuple(
    (name, dimension, Fraction(size))
    for name, dimension, size in (
        ("mm", "length", "0.001"), ("cm", "length", "0.01"), ("m", "length", "1"), ("km", "length", "1000"),
        ("inches", "length", "0.0254"), ("feet", "length", "0.3048"), ("miles", "length", "1609.344"),
        ("yards", "length", "0.9144"), ("s", "time", "1"), ("ms", "time", "0.001"), ("minutes", "time", "60"),
        ("hours", "time", "3600"), ("days", "time", "86400"), ("weeks", "time", "604800"), ("g", "mass", "1"),
        ("kg", "mass", "1000"), ("mg", "mass", "0.001"), ("pounds", "mass", "453.59237"), ("MW", "power", "1e6"),
        ("mW", "power", "0.001"), ("kW", "power", "1000"), ("W", "power", "1"), ("MHz", "frequency", "1e6"),
        ("Hz", "frequency", "1"), ("mHz", "frequency", "0.001"), ("MPa", "pressure", "1e6"),
        ("mPa", "pressure", "0.001"), ("Pa", "pressure", "1"), ("N", "force", "1"), ("kN", "force", "1000"),
        ("J", "energy", "1"), ("kJ", "energy", "1000"), ("V", "voltage", "1"), ("mV", "voltage", "0.001"),
        ("m/s", "speed", "1"), ("km/h", "speed", "5/18"), ("mph", "speed", "0.44704"),
        ("cm^2", "area", "0.0001"), ("m^2", "area", "1"), ("km^2", "area", "1e6"), ("cm^3", "volume", "1e-6"),
        ("m^3", "volume", "1"), ("L", "volume", "0.001"), ("mL", "volume", "1e-6"), ("dollars", "money", "1"),
        ("cents", "money", "0.01"), ("eV", "electron energy", "1"), ("keV", "electron energy", "1000"),
        ("MB", "data", "1e6"), ("GB", "data", "1e9"), ("miles per gallon", "economy", "1"),
        ("gallons per mile", "thirst", "1"), ("apples", "apples", "1"), ("oranges", "oranges", "1"),
        ("workers per day", "rate of workers", "1"), ("days per worker", "rate of days", "1"),
        ("units^2", "square units", "1"), ("units^3", "cubic units", "1"), ("dozen eggs", "eggs", "12"),
        ("eggs", "eggs", "1"),
    )
)  # fmt: skip


def _unit(rng: random.Random, name: str) -> str:
    base, _, power = name.partition("^")
    return rng.choice(
        [rf"\text{{ {base}}}", rf"\,\mathrm{{{base}}}" if " " not in base else rf"\text{{ {base}}}"]
    ) + (f"^{power}" if power else "")


def other_unit(rng: random.Random) -> Case:
    n = rng.randrange(2, 300)
    (one, first, size), (other, second, other_size) = (
        rng.sample(UNITS, 2) if rng.random() < 0.3 else rng.choice(_NEAR)
    )
    if (first, size) == (second, other_size):
        return other_unit(rng)
    factor = size / other_size
    if first == second and rng.random() < 0.3 and size != other_size:  # converted the wrong way round
        amount = n / factor
        return wrong("another unit", f"{_number(amount)}{_unit(rng, other)}", f"{n}{_unit(rng, one)}")
    return wrong("another unit", f"{n}{_unit(rng, other)}", f"{n}{_unit(rng, one)}")


def _alike(one: str, other: str) -> bool:
    """What a careless comparison takes for one: MW and mW, ms and m, miles per gallon and gallons per mile."""
    stems = [{word.lower().strip("s^23") for word in name.split()} for name in (one, other)]
    return stems[0] == stems[1]


_NEAR = [
    (one, other)
    for one in UNITS
    for other in UNITS
    if one != other and (one[1] == other[1] or _alike(one[0], other[0]))
]


def _number(value: Fraction) -> str:
    return (
        str(value.numerator)
        if value.denominator == 1
        else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    )


def decorated(rng: random.Random) -> Case:
    n = rng.randrange(2, 300)
    unit = rng.choice([*NOUNS, "cm", "kg", "hours", "square feet", "dollars"])
    pairs = [
        (rf"{n}\text{{ {unit}}}", f"{n}"), (f"{n} {unit}", f"{n}"), (f"{n}", rf"{n}\text{{ {unit}}}"),
        (rf"\${n}", f"{n}"), (rf"{n}^\circ", f"{n}"), (rf"{n}\%", rf"{n}\%"),
        (rf"{n}\text{{ km}}", rf"{n * 1000}\text{{ m}}"),
        (rf"{n * 60}\text{{ minutes}}", rf"{n}\text{{ hours}}"), (rf"\text{{{n} {unit}}}", f"{n}"),
    ]  # fmt: skip
    return right("units", *rng.choice(pairs))


def plainly_said(rng: random.Random) -> Case:
    n, m = rng.sample(range(2, 300), 2)
    forms = [
        f"The answer is {n}.", f"The answer is ${n}$.", f"#### {n}", boxed(str(n)),
        rf"\boxed{{{m}}}. Wait, that is wrong: \boxed{{{n}}}", f"The answer is: **{n}**",
        f"So the final answer is $\\boxed{{{n}}}$.", f"Answer: {n}", f"<answer>{n}</answer>",
        f"The total is **{n}**.", f"The answer is {n}, not {m}.", f"\\[ \\boxed{{{n}}} \\]",
        f"We get {m} apples first. Therefore the answer is {n}.", f"答案是{n}。", f"**Answer:** {n}",
        f"**Final Answer:** $\\boxed{{{n}}}$", rf"\boxed{{x = {n}}}",
    ]  # fmt: skip
    return Case("statements", rng.choice(forms), str(n), right=True)


MAKERS: dict[str, tuple[Maker, ...]] = {
    "words": (word_behind, word_before, label_before),
    "hedges": (hedge, withdrawal, box_in_formula),
    "units": (other_unit,),
    "right words": (decorated, plainly_said),
}
