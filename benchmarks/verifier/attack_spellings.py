r"""Attacks with short and spoken forms: measures, recurring decimals, sets, vectors, cases, computations, choices.

12 h 31 min for 12.5 h;  0.166 repeating for 1/6;  \mathbb{R}_{\ge 0} for (0,\infty);  9π for 9;  "B or C" for B
"""

from __future__ import annotations

import random
from fractions import Fraction

from attack_case import Case, Maker, distinct, right, signed, wrong

FEET = ("{}'{}''", "{}' {}\"", "{}′{}″", "{} ft {} in", r"{}\text{{ ft }}{}\text{{ in}}", "{}’{}”", "{}ft{}in",
        r"{}\text{{ feet }}{}\text{{ inches}}", r"{}^\prime {}^{{\prime\prime}}", "{} ft. {} in.")  # fmt: skip
TIMES = ("{} h {} min", "{}h {}m", "{}h{}min", "{} hr {} min", r"{}\text{{ h }}{}\text{{ min}}",
         "{} hours {} minutes", "{} hrs and {} mins", "{}小时{}分钟",
         r"{}\text{{ hours and }}{}\text{{ minutes}}")  # fmt: skip
LENGTHS = ("{} m {} cm", "{}m{}cm", "{}m {}cm", r"{}\text{{ m }}{}\text{{ cm}}")
OTHERWISE = (r"\text{otherwise}", r"\text{else}", r"\text{elsewhere}", r"\text{其他}")


def measure(rng: random.Random, *, is_right: bool = False) -> Case:
    """Two units together; a wrong one is off by a little of the smaller unit."""
    big, small = rng.randrange(1, 12), rng.randrange(0, 11)
    shapes, factor, names = rng.choice([
        (FEET, 12, (r"\text{ inches}", r"\text{ in}")), (TIMES, 60, (r"\text{ minutes}", r"\text{ min}")),
        (LENGTHS, 100, (r"\text{ cm}",)),
    ])  # fmt: skip
    off = 0 if is_right else rng.choice((1, -1, 5, factor))
    total = big * factor + small + off
    gold = rng.choice([f"{total}{rng.choice(names)}", rng.choice(shapes[:1]).format(*divmod(total, factor))])
    claimed = rng.choice(shapes).format(big, small)
    return (right if is_right else wrong)("measures in two units", claimed, gold)


def same_measure(rng: random.Random) -> Case:
    return measure(rng, is_right=True)


def recurring(rng: random.Random, *, is_right: bool = False) -> Case:
    fixed = rng.choice(["", "", str(rng.randrange(10)), "0"])
    block = rng.choice(["3", "6", "1", "9"[:0] + "7", "27", "142857", "45"])
    whole = rng.choice([0, 0, 1, rng.randrange(30)])
    scale = 10 ** len(fixed)
    value = Fraction(int(f"{whole}{fixed}"), scale) + Fraction(int(block), scale * (10 ** len(block) - 1))
    shown = f"{whole}.{fixed}{block * (3 if len(block) < 3 else 1)}"
    if len(block) > 2 and fixed:
        shown = f"{whole}.{fixed}{block * 2}"
    word = rng.choice(
        ["{} repeating", "{} recurring", r"{}\text{{ repeating}}", "{} (recurring)", "{}... (repeating)"]
    )
    if fixed.endswith(block[-1]):
        return recurring(rng, is_right=is_right)
    if not is_right:
        value = rng.choice(
            [Fraction(shown), value + Fraction(1, 10 ** rng.randrange(2, 9)), -value, value * 10]
        )
    return (right if is_right else wrong)(
        "recurring decimals", word.format(shown), f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    )


def same_recurring(rng: random.Random) -> Case:
    return recurring(rng, is_right=True)


def part_of_set(rng: random.Random) -> tuple[str, str]:
    """A part of the real numbers as a set with an index, and as an interval."""
    n = rng.randrange(-5, 6)
    return rng.choice([
        (rf"\mathbb{{R}}_{{>{n}}}", rf"({n},\infty)"), (rf"\mathbb{{R}}_{{\ge {n}}}", rf"[{n},\infty)"),
        (rf"\mathbb{{R}}_{{<{n}}}", rf"(-\infty,{n})"), (rf"\mathbb{{R}}_{{\le {n}}}", rf"(-\infty,{n}]"),
        (rf"\mathbb{{R}}_{{\ne {n}}}", rf"\mathbb{{R}}\setminus\{{{n}\}}"), (r"\mathbb{R}", r"(-\infty,\infty)"),
        (rf"\mathbb{{Z}}_{{>{n}}}", rf"\{{{n + 1},{n + 2},{n + 3},\ldots\}}"),
        (rf"\mathbb{{Z}}_{{\ge {n}}}", rf"\{{{n},{n + 1},{n + 2},\ldots\}}"),
    ])  # fmt: skip


def other_part(rng: random.Random) -> Case:
    one, other = part_of_set(rng), part_of_set(rng)
    if one[1] == other[1] or {one[0][8], other[0][8]} == {"Z"}:  # {1, 2, …} twice
        return wrong("part of a set", r"\mathbb{R}_{>0}", r"[0,\infty)")
    return wrong("part of a set", rng.choice([one[0], f"x\\in{one[0]}"]), other[1])


def same_part(rng: random.Random) -> Case:
    text, gold = part_of_set(rng)
    return right("parts of sets", *rng.choice([(text, gold), (gold, text), (f"x\\in{text}", gold)]))


def vector(rng: random.Random, *, is_right: bool = False) -> Case:
    size = rng.choice((2, 3))
    values = [rng.choice([rng.randrange(1, 20), -rng.randrange(1, 20), 0]) for _ in range(size)]
    values[1] = values[1] or 7
    units = rng.choice(
        [r"\mathbf{{{}}}", r"\hat{{{}}}", r"\vec{{{}}}", r"\boldsymbol{{{}}}", r"\hat{{\mathbf{{{}}}}}"]
    )
    terms = "".join(
        f"{signed(value)}{units.format(letter)}"
        for value, letter in zip(values, "ijk", strict=False)
        if value
    ).removeprefix("+")
    if not is_right:
        changed = list(values)
        place = rng.randrange(size)
        changed[place] = rng.choice([-changed[place] or 3, changed[place] + 1, changed[place - 1] + 17])
        values = changed if changed != values else [*values[:-1], values[-1] + 1]
    inside = ",".join(map(str, values))
    gold = rng.choice([f"({inside})", rf"\langle {inside}\rangle",
                       rf"\begin{{pmatrix}}{inside.replace(',', chr(92) * 2)}\end{{pmatrix}}"])  # fmt: skip
    return (right if is_right else wrong)("unit vectors", terms, gold)


def same_vector(rng: random.Random) -> Case:
    return vector(rng, is_right=True)


def pieces(rng: random.Random, *, is_right: bool = False) -> Case:
    """A function by cases, its last case in words; a wrong one has another piece or another border."""
    a, b, c = rng.randrange(2, 9), rng.randrange(-9, 9), rng.randrange(-5, 6)
    values = [f"{a}x{signed(b)}", rng.choice([f"x^2{signed(b - 30)}", str(b + 40)])]
    borders = [rf"x\ge {c}", f"x<{c}"]
    order = rng.sample((0, 1), 2)
    said = [
        borders[order[0]],
        rng.choice([*OTHERWISE, borders[order[1]], rf"\text{{if }}{borders[order[1]]}"]),
    ]
    shown = [values[place] for place in order]
    if not is_right:
        change = rng.randrange(3)
        if change == 0:
            shown.reverse()
        elif change == 1:
            said[0] = said[0].replace(str(c), str(c + rng.choice((1, -1, 3))))
            said[1] = rng.choice(OTHERWISE)
        else:
            shown[rng.randrange(2)] += "+1"
    rows = r"\\".join(
        f"{value}{rng.choice((' & ', ', & '))}{when}" for value, when in zip(shown, said, strict=True)
    )
    gold = rf"\begin{{cases}}{values[0]} & {borders[0]}\\{values[1]} & {borders[1]}\end{{cases}}"
    shape = rng.choice([r"\begin{{cases}}{}\end{{cases}}", r"f(x)=\begin{{cases}}{}\end{{cases}}",
                        r"\left\{{\begin{{array}}{{ll}}{}\end{{array}}\right."])  # fmt: skip
    return (right if is_right else wrong)("function by cases", shape.format(rows), gold)


def same_pieces(rng: random.Random) -> Case:
    return pieces(rng, is_right=True)


def computation(rng: random.Random, *, is_right: bool = False) -> Case:
    """A computation beside its result; a wrong result is not believed."""
    a, b = distinct(rng, 2, 40)
    n, k = rng.randrange(2, 9), rng.randrange(1, 9)
    forms = [
        (rf"{b} \bmod {a}", b % a), (rf"\max({a},{b})", b), (rf"\min\{{{a},{b}\}}", a),
        (rf"\sum_{{i=1}}^{{{n}}}{k}i", k * n * (n + 1) // 2), (f"{a}+{b}", a + b), (rf"{a}\cdot{b}", a * b),
        (rf"\gcd({a * n},{b * n})", n * _gcd(a, b)), (rf"\prod_{{i=1}}^{{{n}}}i", _factorial(n)),
    ]  # fmt: skip
    form, value = rng.choice(forms)
    said = value if is_right else value + rng.choice((1, -1, 7))
    return (right if is_right else wrong)("computation with its result", f"{form}={said}", str(said))


def same_computation(rng: random.Random) -> Case:
    return computation(rng, is_right=True)


def _gcd(a: int, b: int) -> int:
    return a if not b else _gcd(b, a % b)


def _factorial(n: int) -> int:
    return 1 if n < 2 else n * _factorial(n - 1)


def choice(rng: random.Random, *, is_right: bool = False) -> Case:
    """A letter in a sentence; a wrong answer is one that is ruled out, or one of several."""
    one, other, third = rng.sample("ABCDE", 3)
    plain = [
        f"{one}. It can't be {other} or {third}.", f"Therefore I think it's {one}.", f"I think it's ({one}).",
        f"{one}, not {other}.", f"The answer is {one}, it isn't {other}.", f"({one}) Paris", f"So it is {one}.",
        f"It's not {other}, so I choose {one}.", f"The answer is for sure {one}, it can't be {other} or {third}",
        f"{other} is wrong. So ({one}) is the right choice.", f"I think **{one}** is correct",
        f"It's not {other}, therefore I think it's {one}", f"It must be {one}.", f"Option {one} is correct.",
        f"The answer is {one}, since {other} is too small.", f"{one} is correct because {other} is too small.",
        f"答案是{one}，不是{other}。", f"选{one}，不选{other}", f"Jawabannya {one}, bukan {other}.",
        f"{one}) the left one", f"I would go with {one}, not {other}.", f"{one} because {other} is not valid",
    ]  # fmt: skip
    hedged = [
        f"{one} or {other}.", f"I think it's {one} or {other}.", f"I think it's {one}, or maybe {other}.",
        f"{one}. No, {other}.", f"{one}. Actually {other}.", f"It could be {one}.", f"Is it {one}?",
        f"I don't think it's {one}.", f"{one}. That is wrong.", f"{one} and {other}", f"({one}) or ({other})",
        f"{one} is correct. {other} is correct.", f"I doubt that {one} is correct.", f"{one} is correct?",
        f"Neither {one} nor {other} is correct.", f"They say {one} is correct.",
        f"{one} is correct, {other} is too.",
        f"{one} or {other} is correct.", f"If {one} is correct, we are done.",
        f"{one}. 5 apples\n{other}. 6 apples", f"It isn't {one}.", f"I am not sure, but I think it's {one}.",
    ]  # fmt: skip
    if is_right:
        return Case("letter in a sentence", rng.choice(plain[:-1]), one, right=True)
    if rng.random() < 0.5:
        return Case("letter in a sentence", rng.choice(plain), rng.choice((other, third)))
    return Case("letter in a sentence", rng.choice(hedged), rng.choice((one, other)))


def same_choice(rng: random.Random) -> Case:
    return choice(rng, is_right=True)


def bare_formula(rng: random.Random, *, is_right: bool = False) -> Case:
    """A formula without delimiters in a sentence, for the number in it."""
    a, b = distinct(rng, 2, 60)
    forms = [
        (f"{a}π", rf"{a}\pi"), (f"{a} * π", rf"{a}\pi"), (f"{a}/{b} * π", rf"\frac{{{a}}}{{{b}}}\pi"),
        (f"{a}√{b}", rf"{a}\sqrt{{{b}}}"), (f"{a} * sqrt({b})", rf"{a}\sqrt{{{b}}}"), (f"√{a}", rf"\sqrt{{{a}}}"),
        (f"{a}π + {b}", rf"{a}\pi+{b}"), (rf"\frac{{{a}}}{{{b}}}", rf"\frac{{{a}}}{{{b}}}"),
        (f"{a}π/{b}", rf"\frac{{{a}\pi}}{{{b}}}"), (rf"(\frac{{{a}}}{{{b}}})", f"{a}/{b}"),
        (rf"{a}\sqrt{{{b}}}", rf"{a}\sqrt{{{b}}}"),
    ]  # fmt: skip
    form, gold = rng.choice(forms)
    frame = rng.choice(
        ["The answer is {}.", "The area is {} cm.", "So the length is {} units.", "Answer: {}", "It is {}."]
    )
    if is_right:
        return Case("formula in a sentence", frame.format(form), gold, right=True)
    return Case("formula in a sentence", frame.format(form), rng.choice([str(a), str(b)]))


def same_formula(rng: random.Random) -> Case:
    return bare_formula(rng, is_right=True)


MAKERS: dict[str, tuple[Maker, ...]] = {
    "measures": (measure,),
    "recurring": (recurring,),
    "parts of sets": (other_part,),
    "vectors": (vector,),
    "cases": (pieces,),
    "computations": (computation,),
    "choices in sentences": (choice,),
    "formulas in sentences": (bare_formula,),
    "right spellings": (
        same_measure, same_recurring, same_part, same_vector, same_pieces, same_computation, same_choice,
        same_formula,
    ),
}  # fmt: skip
