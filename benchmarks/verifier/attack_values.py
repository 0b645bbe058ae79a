r"""Attacks with values: huge and tiny numbers, functions that are equal nearly everywhere.

    x+2^{100000} for 2^{100000};  |x+600| for x+600;  \tanh 1000 for 1

What is planted is never zero where the maker says so, so every such case is wrong by construction.
"""

from __future__ import annotations

import random
from fractions import Fraction

from attack_case import Case, Maker, distinct, right, signed, wrong

# Right answers that hold an x and are not zero where a piece is planted.
FORMULAS = (
    "x+{a}", "{a}x+{b}", "x^2+{a}", r"\frac{{x}}{{{b}}}", "{a}x", r"x^3-{a}x", r"\sin x+{b}", r"e^x+{a}",
    r"\sqrt{{x^2+{b}}}", r"\frac{{x+{a}}}{{x^2+{b}}}", r"\ln(x^2+{b})", "x^2+y^2", "xy+{a}", r"{a}\pi x",
    "|x|+{a}", r"\lfloor x\rfloor+{b}", r"\sqrt{{x^2}}+{b}", r"\max(x,{b})",
)  # fmt: skip

# Denominators of the points that a comparison may draw, and their products: waves that are zero at all of them.
DENOMINATORS = (2, 60, 97, 997, 1000, 1009, 1013, 1009 * 1013, 2520, 6133, 10**4, 7919)


def huge(rng: random.Random) -> str:
    """An integer too large to write out, or nearly."""
    b, e = rng.randrange(2, 13), rng.randrange(2, 9)
    n = rng.choice([rng.randrange(200, 2000), rng.randrange(20_000, 10**6), rng.randrange(10**6, 10**9)])
    small = rng.randrange(1000, 20_000)
    return rng.choice([
        f"{b}^{{{n}}}", f"{b}^{{{n}}}", f"{b}^{{{e}^{{{rng.randrange(5, 12)}}}}}", f"{small}!",
        rf"\binom{{{2 * small}}}{{{small}}}", f"{b}^{{{n}}}+{b}^{{{n // 2}}}", rf"{b}^{{{n}}}\cdot{e}^{{{n}}}",
        f"10^{{10^{{{e}}}}}", rf"\frac{{{b}^{{{n}}}-1}}{{{b - 1 or 1}}}", f"{b}^{{{b}^{{{b}^{{{e}}}}}}}",
        f"({b}^{{{e}}})^{{{n}}}", rf"{b}\times10^{{{n}}}", f"({small}!)^{{{e}}}",
        "".join(rng.choice("123456789") for _ in range(rng.choice((50, 500, 4000)))),
        f"{b}e{rng.randrange(400, 4900)}",
    ])  # fmt: skip


def off_by_little(rng: random.Random) -> Case:
    r"""`2^{30001}+1` for `2^{30001}`, alone or inside something."""
    number, d = huge(rng), rng.randrange(1, 10)
    other = rng.choice([
        f"{number}+{d}", f"{number}-{d}", f"{d}+{number}", f"{number}+x", rf"{number}+\frac{{1}}{{{d}}}",
        rf"{number}+\pi", rf"{number}+\sqrt{{{d}}}", f"{number}+{d}x^2", f"{number}+i",
    ])  # fmt: skip
    claimed, gold = rng.choice([(other, number), (other, number), (number, other)])
    frame = rng.choice([
        "{}", "{}", "{}", "({},3)", r"\{{{},3\}}", "x={}", "x>{}", "[0,{}]", "x+{}", "y=x+{}", "3,{}",
        r"\frac{{1}}{{{}}}", r"\sqrt{{{}}}", r"\begin{{pmatrix}}{}&1\\0&1\end{{pmatrix}}", r"\ln({})",
    ])  # fmt: skip
    if "x" in other and "x" in frame:
        frame = "{}"
    return wrong("huge number", frame.format(claimed), frame.format(gold))


def other_power(rng: random.Random) -> Case:
    """A base or an exponent changed in a power too large to evaluate."""
    b, e = rng.randrange(2, 13), rng.randrange(2, 9)
    n, d = rng.choice([rng.randrange(10**4, 10**7), rng.randrange(10**8, 10**14)]), rng.choice((1, -1, 2))
    pairs = [
        (f"{b}^{{{n + d}}}", f"{b}^{{{n}}}"), (f"10^{{10^{{{n + d}}}}}", f"10^{{10^{{{n}}}}}"),
        (f"{n + d}!", f"{n}!"), (rf"\binom{{{n + d}}}{{{e}}}", rf"\binom{{{n}}}{{{e}}}"),
        (f"{b + 1}^{{{e}^{{{n}}}}}", f"{b}^{{{e}^{{{n}}}}}"),
        (f"{b}^{{{e}^{{{n + d}}}}}", f"{b}^{{{e}^{{{n}}}}}"), (f"-{b}^{{{n}}}", f"{b}^{{{n}}}"),
        (f"{b}^{{-{n}}}", f"{b}^{{-{n + d}}}"), (f"x^{{{n + d}}}", f"x^{{{n}}}"),
        (f"F_{{{n + d}}}", f"F_{{{n}}}"), (f"{b}e{n + d}", f"{b}e{n}"), (f"{b}^{{{n}}}", "0"),
        (f"{b}^{{-{n}}}", "0"), (r"\infty", f"{b}^{{{n}}}"),
    ]  # fmt: skip
    claimed, gold = rng.choice(pairs)
    return wrong("huge power", claimed, gold)


def vanishing(rng: random.Random) -> Case:
    r"""`\sqrt{10^{300}+1}` for `10^{150}`, `\tanh 1000` for 1."""
    n, d, N = rng.randrange(50, 3000), rng.randrange(1, 10), rng.randrange(300, 10**6)
    tiny = rng.choice(
        [
            f"10^{{-{n}}}",
            f"e^{{-{N}}}",
            f"2^{{-{3 * n}}}",
            rf"\frac{{1}}{{{n}!}}",
            rf"\frac{{{d}}}{{10^{{{n}}}}}",
            f"{d}e-{n}",
        ]
    )
    c = rng.choice([str(d), r"\pi", r"\sqrt2", r"\frac{1}{3}", "e", r"\ln 2", f"{d}i", "0"])
    joined = tiny if c == "0" else f"{c}+{tiny}"
    pairs = [
        (joined, c), (joined, c), (rf"\sqrt{{10^{{{2 * n}}}+{d}}}", f"10^{{{n}}}"),
        (rf"\sqrt{{10^{{{2 * n}}}+{d}}}-10^{{{n}}}", "0"), (rf"\tanh({N})", "1"), (rf"\coth {N}", "1"),
        (rf"\cos(10^{{-{n}}})", "1"), (rf"\sin(10^{{-{n}}})", f"10^{{-{n}}}"),
        (rf"\ln(10^{{{n}}}+{d})", rf"{n}\ln 10"), (f"{d + 1}^{{10^{{-{n}}}}}", "1"),
        (rf"\frac{{2^{{{N}}}+{d}}}{{2^{{{N}}}}}", "1"), (rf"\arctan(10^{{{n}}})", r"\frac{\pi}{2}"),
        (rf"(1+10^{{-{n}}})^{{10^{{{n}}}}}", "e"), (rf"\lfloor 10^{{{n}}}\pi\rfloor", rf"10^{{{n}}}\pi"),
        (rf"\sqrt[{N}]{{{d + 1}}}", "1"), (rf"\sqrt{{10^{{{2 * n}}}+{d}}}", rf"\sqrt{{10^{{{2 * n}}}+{d + 1}}}"),
        (f"[0,1+{tiny}]", "[0,1]"), (f"x>{tiny}", "x>0"), (rf"x\ge{d}-{tiny}", rf"x\ge{d}"),
        (rf"\{{1,1+{tiny}\}}", r"\{1\}"), (f"({d},{tiny})", f"({d},0)"),
        (rf"(-\infty,{d})\cup({d}+{tiny},\infty)", rf"x\ne{d}"), (f"f({d}+{tiny})", f"f({d})"),
    ]  # fmt: skip
    return wrong("vanishing difference", *rng.choice(pairs))


def bump(rng: random.Random) -> str:
    """Something that is zero at most places or tiny everywhere, and not zero somewhere."""
    c, R = (
        rng.choice([0, 1, -2, 3, rng.randrange(-99, 99)]),
        rng.choice([8, 11, 20, 50, 100, 1234, 10**5, 10**9]),
    )
    centre = rng.choice([signed(-c), r"-\pi", r"-\frac{1}{3}", "-0.7001", r"-\sqrt{2}", "-10^{6}"])
    n = rng.randrange(100, 2000)
    return rng.choice([
        rf"\max(0,|x{centre}|-{R})", rf"\max(0,\frac{{1}}{{{R}}}-|x{centre}|)",
        rf"\left\lfloor\frac{{|x|}}{{{R}}}\right\rfloor", f"|x+{R}|-x-{R}", rf"\sqrt{{(x+{R})^2}}-x-{R}",
        rf"\left\lfloor\frac{{1}}{{1+(x{centre})^2}}\right\rfloor", rf"\operatorname{{sgn}}(x+{R})-1",
        rf"\frac{{|x-{R}|}}{{{R}-x}}-1", r"\lfloor x\rfloor+\lfloor -x\rfloor+1",
        r"\lceil x\rceil-\lfloor x\rfloor-1", rf"\arctan(\tan\frac{{x}}{{{R}}})-\frac{{x}}{{{R}}}",
        f"10^{{-{n}}}", f"e^{{-{n}-x^2}}", rf"\frac{{x}}{{10^{{{n}}}}}", rf"\min(0,{R}-x)", rf"\max(x,-{R})-x",
        f"|x^3+{R**3}|-x^3-{R**3}", r"1-\operatorname{sgn}(x)^2", rf"|x-{R}|+|x+{R}|-{2 * R}",
        rf"\frac{{1}}{{1+e^{{-{R}{n}-x^2}}}}-1", r"\lfloor\cos^2 x\rfloor",
        rf"\arcsin(\sin\frac{{x}}{{{R}}})-\frac{{x}}{{{R}}}",
        rf"|{n}x-{R}-\frac{{1}}{{{n}}}|+|{n}x-{R}+\frac{{1}}{{{n}}}|-2|{n}x-{R}|",
        rf"\sqrt{{({n}x-{R}-\frac{{1}}{{9}})^2}}+\sqrt{{({n}x-{R}+\frac{{1}}{{9}})^2}}-2\sqrt{{({n}x-{R})^2}}",
        rf"\max(0,\frac{{1}}{{{n}}}-({n}x-{R})^2)",
        rf"\left\lfloor\frac{{1}}{{1+({n}x-{R})^2}}\right\rfloor", rf"\sin({rng.choice(DENOMINATORS)}\pi x)",
        rf"1-\cos({2 * rng.choice(DENOMINATORS)}\pi x)", rf"e^{{\frac12\ln((x+{R})^2)}}-x-{R}",
        rf"10^{{\frac12\log_{{10}}((x+{R})^2)}}-x-{R}", rf"\lfloor \frac{{x^2}}{{{R}^4}}\rfloor",
        f"||x|-{R}|+|x|-{R}", rf"\ln(e^{{{n}}}+e^{{-x^2}})-{n}",
    ])  # fmt: skip


def planted(rng: random.Random) -> Case:
    r"""`|x+600|` for `x+600`; `x+\lfloor |x|/100 \rfloor` for `x`."""
    formula = rng.choice(FORMULAS).format(a=rng.randrange(1, 10), b=rng.randrange(2, 10))
    R, n = rng.choice([8, 10, 60, 333, 10**4, 10**7]), rng.randrange(2, 9)
    pairs = [(f"{formula}+{bump(rng)}", formula)] * 6 + [
        (rf"(x^2+{n})\left(1+{bump(rng)}\right)", f"x^2+{n}"), (f"y={formula}+{bump(rng)}", f"y={formula}"),
        (f"({formula}+{bump(rng)},{n})", f"({formula},{n})"), (bump(rng), "0"), (f"{n}+{bump(rng)}", f"{n}"),
        (f"|{n}x+{R}|", f"{n}x+{R}"), (f"|x-{R}|", f"{R}-x"), (rf"\sqrt{{(x+{R})^2}}", f"x+{R}"),
        (f"|x^{n}+{R**n}|" if n % 2 else f"|{R}-x^{n}|", f"x^{n}+{R**n}" if n % 2 else f"{R}-x^{n}"),
        (f"|x-{R}|+|x+{R}|", f"{2 * R}"), (rf"\frac{{|x+{R}|}}{{x+{R}}}", "1"),
        (rf"\operatorname{{sgn}}(x+{R})", "1"),
        (rf"\lceil \frac{{n}}{{{n}}}\rceil", rf"\lfloor\frac{{n}}{{{n}}}\rfloor+1"), (rf"\min(x,{R})", "x"),
        (rf"\max(x,-{R})", "x"), (f"|x+y+{R}|", f"x+y+{R}"), (rf"x+\lfloor\frac{{|x|}}{{{R}}}\rfloor", "x"),
        (f"y=|x+{R}|", f"y=x+{R}"),
    ]  # fmt: skip
    return wrong("equal nearly everywhere", *rng.choice(pairs))


def pierced(rng: random.Random) -> Case:
    r"""`(x-\pi)^2>0` for all numbers, and sets that lack a point or have one more."""
    a, b = distinct(rng, -20, 20)
    c = rng.choice(
        [r"\pi", r"\frac{1}{7}", "0.0001", r"\sqrt{2}", "10^{9}", "-10^{20}", "e", str(a), r"\frac{355}{113}"]
    )
    N = rng.randrange(10, 40)
    pairs = [
        (rf"\mathbb{{R}}\setminus\{{{c}\}}", r"\mathbb{R}"), (rf"(-\infty,{c})\cup({c},\infty)", r"\mathbb{R}"),
        (rf"x\ne{c}", r"\mathbb{R}"), (f"(x-{c})^2>0", r"\mathbb{R}"), (f"x^2>10^{{{N}}}", r"\emptyset"),
        (rf"x<10^{{{N}}}", r"\mathbb{R}"), (rf"\{{{c}\}}", r"\emptyset"),
        (rf"[{a},{b})\cup({b},{b + 3}]", f"[{a},{b + 3}]"), (rf"[{a},{b}]\cup\{{{10**N}\}}", f"[{a},{b}]"),
        (f"x^3<10^{{{N}}}", r"\mathbb{R}"), (rf"({a},{b})\cup(10^{{{N}}},\infty)", f"({a},{b})"),
        (rf"(-10^{{{N}}},{b})", rf"(-\infty,{b})"), (f"|x-{c}|>10^{{-{N}}}", rf"x\ne{c}"),
        (rf"[{a},{b}]\setminus\{{{a}+10^{{-{N}}}\}}", f"[{a},{b}]"),
        (rf"\left({a},{b}+10^{{-{N}}}\right)", f"({a},{b})"), (f"x>{a}+10^{{-{N}}}", f"x>{a}"),
        (f"(x-{c})(x-{c}-10^{{-{N}}})<0", r"\emptyset"), (rf"x>10^{{{N}}}", r"\emptyset"),
        (r"\mathbb{R}", rf"x\ne{c}"), (f"({a},{a})", f"[{a},{a}]"), (rf"({a},{b})\cup\{{{b}\}}", f"({a},{b})"),
        (rf"({a},{b})\cap({a + 1},\infty)", f"({a},{b})"), (f"({a},{b})", f"[{a},{b}]"),
        (r"\mathbb{Q}", r"\mathbb{R}"), (r"\mathbb{Z}", r"\mathbb{N}"), (r"\mathbb{R}^+", r"\mathbb{R}"),
        (r"\mathbb{C}", r"\mathbb{R}"),
    ]  # fmt: skip
    return wrong("set with a hole", *rng.choice(pairs))


def same_value(rng: random.Random) -> Case:
    """What must not be lost on the way: other ways to write the same value."""
    a, b = distinct(rng, 1, 12)
    n, k = rng.randrange(2, 40), rng.randrange(2, 9)
    value = Fraction(a, b)
    pairs = [
        (f"{2 * a}/{2 * b}", rf"\frac{{{value.numerator}}}{{{value.denominator}}}"),
        (f"x^2{signed(a + b)}x{signed(a * b)}", f"(x+{a})(x+{b})"),
        (rf"{k}\sqrt{{{a}}}", rf"\sqrt{{{k * k * a}}}"),
        (rf"\frac{{{a}}}{{\sqrt{{{k}}}}}", rf"\frac{{{a}\sqrt{{{k}}}}}{{{k}}}"),
        (f"2\\cdot2^{{{n}}}", f"2^{{{n + 1}}}"), (f"(x-{a})^2", f"x^2-{2 * a}x+{a * a}"),
        (f"{k**n}", f"{k}^{{{n}}}"), (f"2^{{{n * 50}}}", f"4^{{{n * 25}}}"),
        (rf"\ln {a * b}", rf"\ln {a}+\ln {b}"), (f"{b}+{a}i", f"{a}i+{b}"),
        (rf"\frac{{{a}\pi}}{{{b}}}", rf"\frac{{{a}}}{{{b}}}\pi"), (f"{n}!", f"{n}({n - 1})!"),
        (rf"\cos^2x+\sin^2x+{a}", f"{a + 1}"), (f"{n * 1000:,}", f"{n * 1000}"), (f"{a}.{k}0", f"{a}.{k}"),
        (r"\sin 2x", r"2\sin x\cos x"), (f"|x-{a}|", f"|{a}-x|"),
        (rf"\binom{{{n}}}{{2}}", f"{n * (n - 1) // 2}"),
        (rf"\frac{{x}}{{{k}}}+\frac{{{a}}}{{{k}}}", rf"\frac{{x+{a}}}{{{k}}}"),
        (f"e^{{x+{a}}}", rf"e^{{{a}}}e^x"), (f"({b},{a})", f"({b}, {a})"), (f"{a}x+{b}y", f"{b}y+{a}x"),
    ]  # fmt: skip
    return right("values", *rng.choice(pairs))


MAKERS: dict[str, tuple[Maker, ...]] = {
    "huge": (off_by_little, other_power),
    "tiny": (vanishing,),
    "nearly everywhere": (planted, pierced),
    "right values": (same_value,),
}
