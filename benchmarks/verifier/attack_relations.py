r"""Attacks with relations: the problem restated, lists of conditions, bounds that cannot be evaluated.

Every case is built from numbers (roots, ends, coefficients), so that its truth is known.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

from attack_case import Case, Maker, distinct, right, signed, wrong

ALL, NONE = (r"\mathbb{R}", r"(-\infty,\infty)"), (r"\emptyset", r"\text{no solution}")


def unsolved_interval(rng: random.Random) -> Case:
    r"""`x^2-5x+6<0` for `(2,3)`."""
    a, b = distinct(rng, -9, 10)
    k, closed = rng.randrange(1, 5), rng.random() < 0.4
    less, more = (r"\le ", r"\ge ") if closed else ("<", ">")
    inside = rng.random() < 0.6
    sign, turned = (less, more) if inside else (more, less)
    quadratic = f"{k if k > 1 else ''}x^2{signed(-k * (a + b))}x{signed(k * a * b)}"
    forms = [
        f"{quadratic}{sign}0", f"0{turned}{quadratic}", f"(x{signed(-a)})(x{signed(-b)}){sign}0",
        f"x^2{signed(a * b)}{sign}{a + b}x", f"|2x{signed(-a - b)}|{sign}{b - a}",
        rf"\left|x-\frac{{{a + b}}}{{2}}\right|{sign}\frac{{{b - a}}}{{2}}",
        f"(2x{signed(-a - b)})^2{sign}{(b - a) ** 2}", f"-x^2{signed(a + b)}x{signed(-a * b)}{turned}0",
    ]  # fmt: skip
    if not closed:
        forms.append(rf"\frac{{x{signed(-a)}}}{{x{signed(-b)}}}{sign}0")
    if inside:
        forms += [
            f"{k * a}{less}{k}x{less}{k * b}",
            f"{a + k}{less}x+{k}{less}{b + k}",
            f"{-b}{less}-x{less}{-a}",
        ]
    form = rng.choice(forms)
    form = rng.choice([form, form, rf"\{{x\mid {form}\}}", rf"\{{x\in\mathbb{{R}}: {form}\}}", rf"x: {form}"])
    return wrong("restated inequality", form, interval(rng, a, b, inside=inside, closed=closed))


def interval(rng: random.Random, a: int, b: int, *, inside: bool, closed: bool) -> str:
    """One of the ways to write the numbers between a and b, or those outside."""
    left, last, less, more = ("[", "]", r"\le ", r"\ge ") if closed else ("(", ")", "<", ">")
    if inside:
        return rng.choice(
            [
                f"{left}{a},{b}{last}",
                f"{a}{less}x{less}{b}",
                rf"x\in{left}{a},{b}{last}",
                f"{b}{more}x{more}{a}",
            ]
        )
    outside = rf"(-\infty,{a}{last}\cup{left}{b},\infty)"
    return rng.choice([outside, rf"x\in{outside}", rf"x{less}{a}\text{{ or }}x{more}{b}"])


def same_interval(rng: random.Random) -> Case:
    a, b = distinct(rng, -9, 10)
    inside, closed = rng.random() < 0.6, rng.random() < 0.5
    ways = [interval(rng, a, b, inside=inside, closed=closed) for _ in range(2)]
    return right("intervals", *ways)


def unsolved_bound(rng: random.Random) -> Case:
    r"""`2x+3>7` for `x>2`."""
    c, k, d = rng.randrange(-9, 10), rng.choice((-3, -2, 2, 3, 4, 5)), rng.randrange(1, 10)
    sign = rng.choice(("<", ">", r"\le ", r"\ge "))
    turned = {"<": ">", ">": "<", r"\le ": r"\ge ", r"\ge ": r"\le "}
    claimed = sign if k > 0 else turned[sign]
    form = rng.choice([f"{k}x+{d}{claimed}{k * c + d}", f"{k}x{claimed}{k * c}",
                       f"{k * c + d}{turned[claimed]}{k}x+{d}", f"x+{d}{sign}{c + d}",
                       f"{k + 1}x+{d}{claimed}x{signed(k * c + d)}"])  # fmt: skip
    end = rf"(-\infty,{c}{']' if 'l' in sign else ')'}" if sign in ("<", r"\le ") else ""
    end = end or rf"{'[' if 'g' in sign else '('}{c},\infty)"
    return wrong("restated inequality", form, rng.choice([f"x{sign}{c}", end]))


def unsolved_equation(rng: random.Random) -> Case:
    r"""`x^2-5x+6=0` for `2, 3`; `2x=14` for `7`."""
    a, b = distinct(rng, -9, 10)
    k, d = rng.randrange(2, 6), rng.randrange(1, 9)
    if rng.random() < 0.5:
        forms = [
            f"{k}x={k * a}",
            f"x+{d}={a + d}",
            f"{k}x+{d}={k * a + d}",
            f"x^3={a**3}",
            rf"\frac{{x}}{{{k}}}+{d}=" + str(Fraction(a, k) + d),
        ]
        form, golds = rng.choice(forms), [str(a), f"x={a}"]
    else:
        form = rng.choice([f"x^2{signed(-a - b)}x{signed(a * b)}=0", f"(x{signed(-a)})(x{signed(-b)})=0",
                           f"|2x{signed(-a - b)}|={b - a}", f"x^2{signed(a * b)}={a + b}x"])  # fmt: skip
        golds = [f"{a}, {b}", rf"\{{{a},{b}\}}", rf"x={a}\text{{ or }}x={b}"]
    form = rng.choice([form, form, rf"\{{x\mid {form}\}}"])
    return wrong("restated equation", form, rng.choice(golds))


def vacuous(rng: random.Random) -> Case:
    r"""`x^2+1>0` for all numbers, `x<x` for none."""
    k = rng.randrange(1, 10)
    true = [
        f"x^2+{k}>0",
        r"x\le x",
        f"|x|>-{k}",
        f"x<x+{k}",
        "x=x",
        "0=0",
        f"e^x>-{k}",
        rf"\sin x<{k + 1}",
        f"{k}>0",
    ]
    false = [
        f"x^2+{k}<0",
        "x<x",
        f"|x|<-{k}",
        f"x>x+{k}",
        f"x^2=-{k}",
        r"x\ne x",
        f"e^x<-{k}",
        f"0={k}",
        f"x+{k}=x",
    ]
    everything = rng.random() < 0.5
    return wrong(
        "vacuous condition",
        rng.choice(true if everything else false),
        rng.choice(ALL if everything else NONE),
    )


def unfinished(rng: random.Random) -> Case:
    r"""`\gcd(12,18)` for `6`, a sum or an integral for its value."""
    a, b = distinct(rng, 2, 30)
    p, q, n = rng.randrange(1, 6), rng.randrange(1, 9), rng.randrange(3, 12)
    area = Fraction(p * (b * b - a * a), 2) + q * (b - a)
    forms: list[tuple[str, int | Fraction]] = [
        (rf"\gcd({a * p},{b * p})", math.gcd(a * p, b * p)), (rf"\operatorname{{lcm}}({a},{b})", math.lcm(a, b)),
        (rf"\max({a},{b})", b), (rf"\min\{{{a},{b}\}}", a),
        (rf"\sum_{{k={a}}}^{{{a + n}}}({p}k+{q})", sum(p * k + q for k in range(a, a + n + 1))),
        (rf"\sum_{{k=1}}^{{{n}}}k^2", sum(k * k for k in range(n + 1))),
        (rf"\int_{{{a}}}^{{{b}}}({p}x+{q})\,dx", area), (rf"\lim_{{x\to {a}}}({p}x+{q})", p * a + q),
        (rf"\prod_{{k=1}}^{{{n}}}k", math.factorial(n)), (rf"{b * n + a} \bmod {b}", a), (f"f({a})", p * a + q),
        (rf"\sum_{{k=1}}^\infty \frac{{1}}{{{a}^k}}", Fraction(1, a - 1)),
    ]  # fmt: skip
    form, value = rng.choice(forms)
    gold = (
        str(value)
        if Fraction(value).denominator == 1
        else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    )
    frame = rng.choice([
        "{}", "{}", "{}", "x={}", r"\{{{},97\}}", "{},97", "({},97)", "x>{}", "[{},999)", "{}:97", "y={}x", "97+{}",
        r"({},999)\cup(2000,\infty)", r"\begin{{pmatrix}}{}&1\end{{pmatrix}}", r"{}\text{{ apples}}",
    ])  # fmt: skip
    return wrong("restated computation", frame.format(form), frame.format(gold))


def joined_conditions(rng: random.Random) -> Case:
    r"""`\mathbb{R}` for `x>0 \text{ and } x<1`."""
    a, b = distinct(rng, -9, 10)
    both = [rf"x>{a}\text{{ and }}x<{b}", rf"x>{a},x<{b}", f"{a}<x<{b}", f"({a},{b})"]
    either = [rf"x<{a}\text{{ or }}x>{b}", rf"(-\infty,{a})\cup({b},\infty)", rf"x<{a} \lor x>{b}"]
    never = [rf"x<{a}\text{{ and }}x>{b}", rf"x<{a} \land x>{b}"]
    always = [rf"x>{a}\text{{ or }}x<{b}", rf"x>{a} \lor x<{b}"]
    holes = [rf"x\ne{a}, x\ne{b}", rf"x\ne{a}\text{{ and }}x\ne{b}", rf"\mathbb{{R}}\setminus\{{{a},{b}\}}"]
    meanings = [both, either, [*never, *NONE], [*always, *ALL], holes, [f"x>{a}"], [f"x<{b}"], [rf"x\ne{a}"]]
    gold, claimed = rng.sample(meanings, 2)
    return wrong("conditions joined", rng.choice(claimed), rng.choice(gold))


def several_unknowns(rng: random.Random) -> Case:
    r"""`x\ge1, y\ge5` for `x\ge1, y\ge2`."""
    a, b, c = rng.sample(range(-9, 10), 3)
    sign, x, y, z = rng.choice(("<", ">", r"\le ", r"\ge ", r"\ne ")), *rng.sample("xyzabmnt", 3)
    join = rng.choice([", ", r"\text{ and }", r" \text{ or } ", "; "])
    gold = f"{x}{sign}{a}{join}{y}{sign}{b}"
    claimed = rng.choice([
        f"{x}{sign}{a}{join}{y}{sign}{c}", f"{x}{sign}{b}{join}{y}{sign}{a}", f"{x}{sign}{a}", f"{y}{sign}{b}",
        f"{x}{sign}{a}{join}{x}{sign}{b}", f"{x}{sign}{a}{join}{z}{sign}{b}", rf"{x}{sign}{a}{join}{y}={b}",
        f"{y}{sign}{a}{join}{y}{sign}{b}", f"{x}{sign}{a}{join}{y}{sign}{b}{join}{z}{sign}{c}", *ALL, *NONE,
    ])  # fmt: skip
    return wrong("several unknowns", claimed, gold)


def other_unknown(rng: random.Random) -> Case:
    r"""`y<1 \text{ or } y>3` for the same in x; `\{2x \mid x>1\}` for `x>1`."""
    a, b = distinct(rng, 1, 20)
    k = rng.randrange(2, 9)
    pairs = [
        (rf"y<{a}\text{{ or }}y>{b}", rf"x<{a}\text{{ or }}x>{b}"),
        (rf"x<{a}\text{{ or }}y>{b}", rf"x<{a}\text{{ or }}x>{b}"),
        (rf"x<{a}\text{{ or }}y>{b}", rf"(-\infty,{a})\cup({b},\infty)"), (rf"y\in({a},{b})", f"{a}<x<{b}"),
        (f"{a}<y<{b}", f"{a}<x<{b}"), (rf"\{{{k}x\mid x>{a}\}}", f"x>{a}"),
        (rf"\{{x^{k}\mid x>{a + 1}\}}", rf"({a + 1},\infty)"),
        (rf"\{{x\in\mathbb{{Z}}\mid x>{a}\}}", rf"({a},\infty)"),
        (rf"\{{({k},x)\mid x>{a}\}}", rf"({a},\infty)"), (f"f(x)>{a}", f"x>{a}"), (f"f(x)>{a}", f"g(x)>{a}"),
        (f"f({a})>{k}", f"f({b})>{k}"),
        (rf"x>{a}, x\in\mathbb{{Z}}", rf"({a},\infty)"),
        (rf"{k}n\pi, n\in\mathbb{{N}}", rf"{k}n\pi, n\in\mathbb{{Z}}"),
        (f"|x|>{a}", f"x>{a}"), (f"|x|={a}", f"x={a}"),
        (f"x^2>{a}", f"x>{a + k}"), (f"-x>{a}", f"x>{a}"), (f"{k}x={a}", f"x={a}"), (f"xy={a}", f"x={a}"),
        (rf"\frac{{x}}{{y}}={a}", rf"\frac{{y}}{{x}}={a + 1}"),
        (rf"\frac{{a}}{{b}}={k}", rf"\frac{{b}}{{a}}={k}"), (rf"\max(x,{a})={b}", f"{b}"),
        (f"f({a})={k}", f"f({b})={k}"), (f"f({a})={k}", f"g({a})={k}"), (f"x={k}", f"y={k}"),
        (f"|x|={a}", f"{a}"), (f"x={a}\\approx {b + 99}", f"{a}"), (f"(y,x)=({a},{b})", f"(x,y)=({a},{b})"),
        (f"x={a},y={b}", f"x={b},y={a}"), (f"({b},{a})", f"x={a},y={b}"), (rf"x\not={a}", f"x={a}"),
        (rf"x\ne{a}", f"{a}"),
    ]  # fmt: skip
    return wrong("another unknown", *rng.choice(pairs))


def unevaluable(rng: random.Random) -> Case:
    r"""`x>5\text{ cm}` for `x>6\text{ cm}`, and `\emptyset` for either."""
    v, w, u = rng.sample(range(2, 40), 3)
    dress = rng.choice([
        r"{}\text{{ cm}}", r"\${}", r"\pm{}", r"{}^\circ\text{{C}}", r"{}\text{{ dollars}}",
        r"{}\text{{ units}}", "{}i", r"\sqrt{{-{}}}", r"\ln(-{})", r"10^{{10^{{{}}}}}", r"{}\%", "{}:3",
        r"\foo_{{{}}}", r"\frac{{{}}}{{0}}", r"\text{{day }}{}", r"{}_{{\text{{max}}}}", r"\arcsin({})",
        r"{}!!!!", r"\alpha_{{{}}}", r"a^{{{}}}", r"f({})", r"9^{{9^{{{}}}}}", r"{}\text{{ if }}y>0",
        r"\overline{{{}}}", r"{}\,\mu m", r"\left\{{{}\right\}}",
    ])  # fmt: skip
    shape = rng.choice([
        "x>{}", r"x\ge{}", "x<{}", r"x\ne{}", f"{u - 50}<x<{{}}", "|x|<{}", f"({u - 50},{{}})", "[{},\\infty)",
        f"({u - 50},0)\\cup(0,{{}}]", f"x>{u},y>{{}}", "{}>x", r"x>{} \text{{ or }}x<-99",
    ])  # fmt: skip
    if "pm" in dress and "|" in shape:
        return unevaluable(rng)
    gold = shape.replace("{}", dress.format(v)).replace("{{", "{").replace("}}", "}")
    other = shape.replace("{}", dress.format(w)).replace("{{", "{").replace("}}", "}")
    return wrong("unevaluable bound", rng.choice([other, other, other, *NONE, *ALL]), gold)


def same_conditions(rng: random.Random) -> Case:
    a, b = distinct(rng, -9, 10)
    m = rng.randrange(1, 9)
    pairs = [
        (rf"x>{a}\text{{ and }}x<{b}", f"{a}<x<{b}"),
        (rf"x<{a}\text{{ or }}x>{b}", rf"(-\infty,{a})\cup({b},\infty)"),
        (rf"y\ge{b}, x\ge{a}", rf"x\ge{a}, y\ge{b}"), (rf"x\ne\pm{m}", rf"x\ne{m}, x\ne-{m}"),
        (f"{b}>x>{a}", f"{a}<x<{b}"), (rf"\{{x\mid {a}<x<{b}\}}", f"({a},{b})"),
        (rf"\mathbb{{R}}\setminus\{{{a}\}}", rf"x\ne{a}"), (f"x={a},y={b}", f"({a},{b})"),
        (f"y={m}x{signed(a)}", f"{m}x-y={-a}"), (f"2y={2 * m}x{signed(2 * a)}", f"y={m}x{signed(a)}"),
        (f"{a}", f"x={a}"), (rf"x={a}\text{{ or }}x={b}", f"{b}, {a}"), (rf"\{{{b},{a}\}}", rf"\{{{a},{b}\}}"),
        (rf"x\in[{a},{b}]", rf"{a}\le x\le{b}"),
    ]  # fmt: skip
    return right("conditions", *rng.choice(pairs))


MAKERS: dict[str, tuple[Maker, ...]] = {
    "restated": (unsolved_interval, unsolved_bound, unsolved_equation, vacuous, unfinished),
    "conditions": (joined_conditions, several_unknowns, other_unknown),
    "unevaluable": (unevaluable,),
    "right relations": (same_interval, same_conditions),
}
