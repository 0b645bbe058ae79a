r"""Attacks with names and notation: indices, bounds of sums, order, times, bases, choices, commas, accents.

a_{n-1} for a_{n+1};  \sum_{k<n} k for \sum_{k\le n} k;  CAB for ABC;  2:40 for 1:20;  12.15 for 12,15
"""

from __future__ import annotations

import random

from attack_case import Case, Maker, distinct, right, wrong


def index(rng: random.Random) -> Case:
    """The same name with another index."""
    a, b = distinct(rng, 1, 30)
    letter, i, j, k = rng.choice("axTFSu"), *rng.sample("ijkmnpq", 3)
    shapes = [
        "{}", "-{}", f"{i}+{{}}", f"{i}-{{}}", f"{{}}{i}", f"{i}^{{{{{{}}}}}}", f"{i}{j}+{{}}", f"{i}+{j}+{{}}",
        rf"\frac{{{{{i}{j}}}}}{{{{{{}}}}}}", f"{{}}^{{{{{a}}}}}", f"{i},{{}}", r"\alpha+{}", f"{i}{j}{k}+{{}}",
        "10^{{{}}}", f"{i}({j}+{{}})", f"{i}>{{}}", rf"f({i}{j}{{}})",
    ]  # fmt: skip
    shape = rng.choice(shapes)
    pairs = [(shape.format(a), shape.format(b))] * 4 + [
        (f"{i}+{a}", f"{i}-{a}"), (f"{i}+{j}+{k}", f"{i}+{j}-{k}"), (f"{i}-{j}", f"{j}-{i}"), (f"-{i}", i),
        (f"{i}{j}", f"{j}{i}"), (f"|{i}{j}{k}|", f"{i}{j}{k}"), (f"{i}^2", f"2{i}"), (f"{i}<{j}", f"{i}>{j}"),
        (rf"\sqrt{{{i}{j}{k}}}", f"{i}{j}{k}"), (r"\max", r"\min"), (f"{i},{j}", f"{j},{i}"),
        (f"{i}+{j}", f"{i}{j}"),
    ]  # fmt: skip
    one, other = rng.choice(pairs)
    frame = rng.choice(
        [
            f"{letter}_{{{{{{}}}}}}",
            f"{letter}_{{{{{{}}}}}}",
            f"2{letter}_{{{{{{}}}}}}+1",
            f"{letter}_{{{{{{}}}}}}=3",
            f"({letter}_{{{{{{}}}}}},2)",
        ]
    )
    return wrong("another index", frame.format(one), frame.format(other))


def bounds(rng: random.Random) -> Case:
    """Sums, integrals and unions over other ranges, or of something else."""
    a, b = distinct(rng, 1, 12)
    sign = rng.choice([r"\sum", r"\prod", r"\bigcup", r"\bigcap"])
    body = (
        rng.choice(["a_k", "f(k)"])
        if sign in (r"\sum", r"\prod")
        else rng.choice(["A_k", "(k,k+1)"] if "cup" in sign else ["A_k"])
    )
    pairs = [
        (rf"{sign}_{{k={a}}}^{{n}}{body}", rf"{sign}_{{k={b}}}^{{n}}{body}"),
        (rf"{sign}_{{k={a}}}^{{\infty}}{body}", rf"{sign}_{{k={b}}}^{{\infty}}{body}"),
        (rf"{sign}_{{k={a}}}^{{\infty}}{body}", rf"{sign}_{{k=-\infty}}^{{{a}}}{body}"),
        (rf"{sign}_{{k\le n}}{body}", rf"{sign}_{{k<n}}{body}"),
        (rf"{sign}_{{k\ge {a}}}{body}", rf"{sign}_{{k\le {a}}}{body}"),
        (rf"{sign}_{{k\in\mathbb{{Z}}}}{body}", rf"{sign}_{{k\in\mathbb{{N}}}}{body}"),
        (rf"\sum_{{k={a}}}^{{n}}f(k)", rf"\prod_{{k={a}}}^{{n}}f(k)"),
        (r"\bigcup_{k=1}^{n}A_k", r"\bigcap_{k=1}^{n}A_k"), (r"\int y\,dx", r"\int x\,dy"),
        (rf"\sum_{{k=1}}^{{n}}|k-{b}|", rf"\sum_{{k=1}}^{{n}}({b}-k)"),
        (rf"\sum_{{k={a}}}^n\lceil k/{b}\rceil", rf"\sum_{{k={a}}}^n(\lfloor k/{b}\rfloor+1)"),
        (rf"\prod_{{k=1}}^{{n}}\sqrt{{(k-{b})^2}}", rf"\prod_{{k=1}}^{{n}}({b}-k)"),
        (rf"{b}\sum_{{k=1}}^{{n}}(k+k(k-{a})(k-7919))", rf"{b}\sum_{{k=1}}^{{n}}k"),
        (rf"x+\sum_{{k=1}}^{{n}}(k+(k-{a})(k-{b}))", r"x+\sum_{k=1}^{n}k"),
        (rf"\int_0^{{{2 * b}}}|x-{b}|\,dx", rf"\int_0^{{{2 * b}}}({b}-x)\,dx"),
        (rf"\int_{{{a}}}^{{{b}}}f(x)\,dx", rf"\int_{{{b}}}^{{{a}}}f(x)\,dx"),
        (r"\lim_{x\to0^+}f(x)", r"\lim_{x\to0^-}f(x)"), (r"\lim_{x\to\infty}f(x)", r"\lim_{x\to-\infty}f(x)"),
        (rf"\lim_{{x\to{a}}}f(x)", rf"\lim_{{x\to{b}}}f(x)"),
        (rf"{sign}_{{k={a}}}^{{n}}{body}", rf"{sign}_{{k={a}}}^{{m}}{body}"),
        (rf"\bigcup_{{k={a}}}^{{{b}}}(k,k+1)", rf"\bigcup_{{k={a}}}^{{{b + 1}}}(k,k+1)"),
    ]  # fmt: skip
    return wrong("other bounds", *rng.choice(pairs))


def order(rng: random.Random) -> Case:
    """The same letters or parts in another order, where order counts."""
    word = "".join(rng.sample("KLMNPQRTVXZ", rng.randrange(3, 6)))
    turned = "".join(rng.sample(word, len(word)))
    if turned == word:
        turned = word[::-1]
    a, b, c = rng.sample(range(2, 30), 3)
    coins = "HH" + "".join(rng.choice("HT") for _ in range(4)) + "HT"
    pairs = [
        (rf"\text{{{turned}}}", rf"\text{{{word}}}"), (rf"\text{{{coins[::-1]}}}", rf"\text{{{coins}}}"),
        (rf"\overrightarrow{{{word[1]}{word[0]}}}", rf"\overrightarrow{{{word[:2]}}}"),
        (r"f\circ g", r"g\circ f"), (r"\vec a\times\vec b", r"\vec b\times\vec a"),
        (r"\vec a\times\vec b", r"\vec a\cdot\vec b"), (r"p\land q", r"p\lor q"), (r"p\to q", r"q\to p"),
        (r"A\setminus B", r"B\setminus A"), (r"A\cup B", r"A\cap B"), (f"({b},{a},{c})", f"({a},{b},{c})"),
        (f"{b}:{a}", f"{a}:{b}"), (rf"\begin{{pmatrix}}{b}\\{a}\end{{pmatrix}}", f"({a},{b})"),
        (rf"\begin{{pmatrix}}{a}&{c}\\{b}&1\end{{pmatrix}}", rf"\begin{{pmatrix}}{a}&{b}\\{c}&1\end{{pmatrix}}"),
        (rf"\{{{a},{b}\}},\{{{c}\}}", rf"\{{{a}\}},\{{{b},{c}\}}"), (f"({a},{b}),({c},1)", f"({a},{c}),({b},1)"),
        (r"\text{IV}", r"\text{VI}"), (rf"\angle {word[1]}{word[0]}{word[2]}", rf"\angle {word[:3]}"),
        (f"[{b},{a}]", f"[{a},{b}]"), (f"{a}-{b}", f"{b}-{a}"),
        (rf"\frac{{{b}}}{{{a}}}", rf"\frac{{{a}}}{{{b}}}"),
    ]  # fmt: skip
    return wrong("another order", *rng.choice(pairs))


def clock(rng: random.Random) -> Case:
    """Times that are equal as ratios, halves of the day, bases, percent, commas."""
    h, m = rng.randrange(1, 7), rng.randrange(10, 30)
    digits = f"1{rng.randrange(0, 2)}{rng.randrange(0, 2)}1"
    a, b = rng.sample(range(2, 10), 2)
    x, y = rng.randrange(10, 99), rng.randrange(10, 99)
    pairs = [
        (f"{2 * h}:{2 * m}", f"{h}:{m}"), (rf"{h}:{m}\text{{ am}}", rf"{h}:{m}\text{{ pm}}"),
        (rf"{2 * h}:{2 * m}\text{{ am}}", rf"{h}:{m}\text{{ am}}"), (f"{2 * h}:{2 * m} p.m.", f"{h}:{m} p.m."),
        (f"{digits}_{a}", f"{digits}_{{{b}}}"), (str(int(digits, 2)), f"{digits}_2"), (f"{digits}_2", digits),
        (f"0.0{a}\\%", f"0.0{a}"), (f"0.{a}\\%", f"0.{a}"), (rf"\frac{{1}}{{{a}}}\%", rf"\frac{{1}}{{{a}}}"),
        (f"x>{a}\\%", f"x>{a}"), (f"({a}\\%,{b})", f"({a},{b})"), (f"not {x},{y}", f"{x}.{y}"),
        (f"minus {x},{y}", f"{x}.{y}"), (rf"\text{{twice }}{x},{y}", f"{x}.{y}"), ("twenty-fifth", "4"),
        ("thirty-sixth", "5"), ("万", "0"), (f"{x} mod {a}", f"{x}"), (rf"{x}\bmod {a}", f"{x}"),
        (f"{a}s^{{x}}", f"{a}"), (f"{a}g", f"{a}kg"), (f"{a} m", f"{a} km"),
        (rf"{a}^\circ {x}'", rf"{a}^\circ {y + 100}'"), (f"{a}' {b}''", f"{b}' {a}''"), (f"{a}k", f"{a}"),
        (f"{a}i", f"{a}"), (f"{a}e", f"{a}"),
        (rf"{a}\text{{ hours }}{x}\text{{ minutes}}", rf"{a}\text{{ hours }}{x + 1}\text{{ minutes}}"),
        (rf"{a}\text{{ feet }}{b}\text{{ inches}}", rf"{a}\text{{ feet}}"),
        (rf"{a}^{{\text{{th}}}}\text{{ root of }}{b}", f"{a}"), (f"{a},{x}{b}", f"{a}{x}{b}1"),
        (f"{a}.{x}{b}", f"{a}{x}{b}"), (f"{a}\\cdot\\frac{{1}}{{{b}}}", f"{a}\\frac{{1}}{{{b}}}"),
        (rf"0.\overline{{{x}}}", f"0.{x}"),
    ]  # fmt: skip
    return wrong("another notation", *rng.choice(pairs))


def choice(rng: random.Random) -> Case:
    a, b = rng.sample("ABCDE", 2)
    n = rng.randrange(2, 99)
    claimed = rng.choice([
        rf"({a}) \text{{ is wrong, it is {b}}}", f"{a}. not this, rather {b}", rf"\text{{({a}) or ({b})}}",
        f"{a} or {b}", f"not {a}", rf"\neg {a}", rf"\text{{{a}) never, but {b}}}", f"({b})",
        rf"\text{{{b}. {n}}}", f"{a}, {b}", f"{a}{b}", f"({a})({b})", rf"\text{{anything but {a}}}", f"{a}'",
        f"-{a}", f"{a}_1", f"{a}^2", f"2{a}", rf"\text{{Either {a} or {b}}}",
        f"{a}={b}", f"{a}/{b}", rf"\text{{all but {a}}}", rf"\text{{{a}? No, {b}}}",
        rf"\text{{{a}. is incorrect}}", rf"\overline{{{a}}}\text{{ or }}{b}",
    ])  # fmt: skip
    return wrong("choice", claimed, a)


def accent(rng: random.Random) -> Case:
    x = rng.choice("xvyzr")
    pairs = [
        (rf"\dot {x}", x), (rf"\ddot {x}", rf"\dot {x}"), (f"{x}'", x), (f"{x}''", f"{x}'"),
        (rf"\overline{{{x}}}", x), (f"f'({x})", f"f({x})"), (f"f^{{-1}}({x})", f"f({x})"),
        (f"f(-{x})", f"f({x})"), (f"f({x}+1)", f"f({x})"), (f"f({x}^2)", f"f({x})^2"), (f"f(2{x})", f"2f({x})"),
        (f"{x}^*", x), (rf"\neg {x}", x), (rf"\Delta {x}", x),
    ]  # fmt: skip
    return wrong("accent or function", *rng.choice(pairs))


def other_letter_for_a_constant(rng: random.Random) -> Case:
    a = rng.randrange(2, 9)
    pairs = [
        (f"x^{a}+c", f"x^{a}+C"),
        (rf"\frac{{\pi}}{{{a}}}+n\pi, n\in\mathbb{{Z}}", rf"\frac{{\pi}}{{{a}}}+k\pi, k\in\mathbb{{Z}}"),
        (r"\cos(n\pi)", "(-1)^n"), (f"v^2_{a}", f"v_{a}^2"),
        (f"{{}}_{{{a + 2}}}C_{{2}}", f"{(a + 2) * (a + 1) // 2}"),
        (rf"{a}\text{{ quarters}}", rf"\frac{{{a}}}{{4}}"),
        (rf"1\text{{ hour and }}{a * 5}\text{{ minutes}}", rf"{60 + a * 5}\text{{ minutes}}"),
        (f"f(t)={a}t", f"f(x)={a}x"), (f"a_{{{a}}}", f"a_{a}"), (f"S_{{n+{a}}}", f"S_{{{a}+n}}"),
        (r"\text{AC}", "A, C"), (rf"\{{1,2,{a + 2},\ldots\}}", rf"\{{1,2,{a + 2},\dots\}}"),
        (rf"{a}:{2 * a}", "1:2"),
    ]  # fmt: skip
    return right("names", *rng.choice(pairs))


def letter(rng: random.Random) -> Case:
    """A letter that names something, called by another name; a lone constant such as C may have any."""
    formula = rng.choice([
        r"\frac{{{}+{}+{}}}{{2}}", "{0}{1}+{1}{2}+{2}{0}", "{}^2+{}^2={}^2", "{}x^2+{}x+{}", "{}={}{}^2",
        r"\frac{{-{1}+\sqrt{{{1}^2-4{0}{2}}}}}{{2{0}}}", "{}(1+{})^{}", r"\frac{{{}{}}}{{{}+1}}", "({},{},{})",
    ])  # fmt: skip
    names = rng.choice([list("abc"), rng.sample("abdhmnpqrst", 3)])
    place = rng.randrange(3)
    other = rng.choice([name for name in "abcdhkmnpqrstuvwyzABDK" if name not in names])
    changed = [*names[:place], other, *names[place + 1 :]]
    return wrong("another letter", formula.format(*changed), formula.format(*names))


MAKERS: dict[str, tuple[Maker, ...]] = {
    "names": (index, bounds, order, accent, letter),
    "notation": (clock, choice),
    "right names": (other_letter_for_a_constant,),
}
