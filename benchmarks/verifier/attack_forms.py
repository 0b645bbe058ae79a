r"""Attacks with forms that could be read in two ways, and the ways in which the right reading may be written.

    (21,0) for 21,000;  a+k for a+c;  b=1,a=2 for (1,2);  ((1,2),(3,4))^T for the matrix;  x=x for x^2+1>0

Each maker draws the numbers first, so that it knows what every text means.
"""

from __future__ import annotations

import random

from attack_case import Case, Maker, distinct, right, wrong

TRANSPOSES = ("^T", r"^{\top}", r"^{\mathrm{T}}", "^{T}", r"^{\text{T}}", r"^{\intercal}")
RUNS = ("abcdef", "mn", "pqrst", "uvw", "xyz")


def grouped(rng: random.Random) -> Case:
    """A number with grouping commas, and its groups as something else; the same the other way round."""
    groups = [
        rng.randrange(1, 1000),
        *(rng.choice([0, rng.randrange(1000)]) for _ in range(rng.choice((1, 1, 2)))),
    ]
    number = ",".join([str(groups[0]), *(f"{group:03}" for group in groups[1:])])
    items = list(map(str, groups))
    mixed = rng.sample(items, len(items))
    shapes = [
        f"({','.join(items)})", r"\text{ or }".join(items), rf"\{{{','.join(items)}\}}", f"[{', '.join(items)}]",
        ", ".join(f"{name}={item}" for name, item in zip("xyz", items, strict=False)), r"\text{ and }".join(mixed),
        r"\langle " + ",".join(items) + r"\rangle", " 或 ".join(items), f"({'; '.join(items)})",
    ]  # fmt: skip
    if mixed != items:
        shapes.append(", ".join(mixed))
    frame = rng.choice(["{}", "{}", "{}", r"\${}", "-{}", r"{}\text{{ m}}", "x={}"])
    if rng.random() < 0.3 and frame == "{}":
        return wrong("groups of a number", number, f"({', '.join(items)})")
    return wrong("groups of a number", rng.choice(shapes), frame.format(number))


def same_grouped(rng: random.Random) -> Case:
    n, m = rng.randrange(1000, 10**9), rng.randrange(1000, 10**6)
    a, b = rng.randrange(1, 100), rng.randrange(100, 1000)
    pairs = [
        (f"{n:,}", str(n)), (str(n), f"{n:,}"), (f"({n:,}, {m:,})", f"({n}, {m})"), (f"{n:,}, {m:,}", f"{m}, {n}"),
        (f"{a}, {b}", f"{a},{b}"), (f"{a},{b}", f"{b}, {a}"), (rf"{n:,}\text{{ cm}}", str(n)), (f"x={n:,}", str(n)),
        (f"{a},{b}", rf"\{{{b},{a}\}}"), (f"{a},{b},{a * 1000}", f"{a * 1000}, {b}, {a}"),
    ]  # fmt: skip
    return right("grouped numbers", *rng.choice(pairs))


def letters(rng: random.Random) -> Case:
    """Another letter where letters stand for something, and a constant of integration where there is one."""
    first, second, other = rng.sample("abcdefghkmnpqstuvwxyzABCDFGK", 3)
    n = rng.randrange(2, 30)
    shapes = ["{}+{}", "{}-{}", "{}{}+" + str(n), str(n) + "{}+{}", "{}^2+{}", r"\frac{{{}}}{{{}}}",
              "({},{})", "{}{}", r"\sqrt{{{}+{}}}", "{}+2{}+1", "{}={}"]  # fmt: skip
    shape = rng.choice(shapes)
    named = [
        (f"{n}k+1", f"{n}j+1"), ("k+\\pi", "n+\\pi"), (f"a+{n}c", f"a+{n}k"), ("x+y+c", "x+y+k"), ("mx+c", "mx+k"),
        ("a+b+C", "a+b+D"), (f"{n}x+b", f"{n}x+c"), (f"\\pi+{n}k\\pi", f"\\pi+{n}x\\pi"), ("C_1x+C_2", "C_1x+C_1"),
        (f"x^{n}+C", f"x^{n}+x"), (f"x^{n}+C", f"x^{n}+k"), (f"1+{n}k\\pi", f"1+{2 * n}k\\pi"),
    ]  # fmt: skip
    if rng.random() < 0.5:
        return wrong("another letter", *reversed(rng.choice(named)))
    if {first, other} == {"c", "C"} or {second, other} == {"c", "C"}:  # only the case differs
        other = "r"
    return wrong("another letter", shape.format(first, other), shape.format(first, second))


def free_letters(rng: random.Random) -> Case:
    k, n = rng.sample("kmn", 2)
    a, b = rng.randrange(2, 9), rng.randrange(1, 9)
    base = rf"\frac{{\pi}}{{{a}}}"
    period = rng.choice([r"@\pi", r"2@\pi", r"2\pi @", rf"\frac{{@\pi}}{{{b}}}"])
    family, again = (f"{base}+{period.replace('@', letter)}" for letter in (k, n))
    domain = rng.choice([
        rf"{again},{n}\in\mathbb{{Z}}", rf"{again} ({n}∈Z)", rf"{again}\quad({n}\in\mathbb{{Z}})", again,
        rf"{again}\quad {n}\in\mathbb{{Z}}", rf"{again}\text{{ where }}{n}\text{{ is an integer}}",
        rf"{again}\text{{ for any integer }}{n}",
    ])  # fmt: skip
    said = rng.choice([domain, domain, rf"\{{{again}\mid {n}\in\mathbb{{Z}}\}}", rf"{{{again}|{n}∈ℤ}}"])
    gold = rng.choice([rf"{family},{k}\in\mathbb{{Z}}", family])
    pairs = [
        (said, gold), (said, gold), (f"{30 * b}^\\circ+360^\\circ {n}", f"{30 * b}^\\circ+360^\\circ {k}"),
        (f"x^{a}+{rng.choice(('c', 'K', 'C_1'))}", f"x^{a}+C"), (f"y={b}e^x+C", f"{b}e^x+c"),
        ("Ae^x+Be^{-x}", "C_1e^x+C_2e^{-x}"), (f"x={domain}", f"x={family},{k}\\in\\mathbb{{Z}}"),
    ]  # fmt: skip
    return right("free letters", *rng.choice(pairs))


def named_values(rng: random.Random) -> Case:
    """Values bound to names in another order than the right answer's places have."""
    run = rng.choice(RUNS)
    count = min(len(run), rng.choice((2, 2, 3)))
    names = sorted(rng.sample(run, count))
    values = rng.sample(range(-20, 60), count)
    turned = values[::-1]
    gold = f"({','.join(map(str, values))})"
    said = list(zip(names, turned, strict=True))
    if turned == values:
        said[0] = (said[0][0], 99)
    rng.shuffle(said)
    join = rng.choice([", ", ",", r"\text{ and }", "; ", r",\ "])
    text = join.join(f"{name}={value}" for name, value in said)
    wrapped = rng.choice(["{}", "{}", r"\begin{{cases}}{}\end{{cases}}"])
    if "cases" in wrapped:
        text = r"\\".join(f"{name}={value}" for name, value in said)
    return wrong("values of other names", wrapped.format(text), gold)


def same_named(rng: random.Random) -> Case:
    run = rng.choice(RUNS)
    names = sorted(rng.sample(run, 2))
    values = rng.sample(range(-20, 60), 2)
    said = list(zip(names, values, strict=True))
    rng.shuffle(said)
    text = rng.choice([", ", r"\text{ and }", "; "]).join(f"{name}={value}" for name, value in said)
    golds = [
        f"({values[0]},{values[1]})", f"({names[0]},{names[1]})=({values[0]},{values[1]})",
        f"{names[1]}={values[1]},{names[0]}={values[0]}", f"{values[0]}, {values[1]}",
        rf"\begin{{cases}}{names[0]}={values[0]}\\{names[1]}={values[1]}\end{{cases}}",
        rf"\left\{{\begin{{array}}{{l}}{names[0]}={values[0]}\\{names[1]}={values[1]}\end{{array}}\right.",
    ]  # fmt: skip
    return right("named values", text, rng.choice(golds))


def transposed(rng: random.Random) -> Case:
    """A matrix for its transpose, in the notation of the response."""
    rows, columns = rng.choice([(2, 2), (2, 3), (3, 2), (3, 3)])
    entries = [[rng.randrange(-9, 10) for _ in range(columns)] for _ in range(rows)]
    entries[0][-1] = 50
    turned = [list(column) for column in zip(*entries, strict=True)]
    claimed = _matrix(entries, rng) + rng.choice(TRANSPOSES)
    if rng.random() < 0.3:
        return wrong("transposed", _matrix(turned, rng), _latex(entries))
    return wrong("transposed", claimed, _latex(entries))


def same_matrix(rng: random.Random) -> Case:
    rows, columns = rng.choice([(2, 2), (2, 3), (3, 2), (3, 3), (3, 1)])
    entries = [[rng.randrange(-9, 10) for _ in range(columns)] for _ in range(rows)]
    turned = [list(column) for column in zip(*entries, strict=True)]
    if columns > 1 and rng.random() < 0.5:
        return right("matrices", _matrix(turned, rng) + rng.choice(TRANSPOSES), _latex(entries))
    return right("matrices", _matrix(entries, rng), _latex(entries))


def _latex(entries: list[list[int]]) -> str:
    body = r"\\".join("&".join(map(str, row)) for row in entries)
    return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"


def _matrix(entries: list[list[int]], rng: random.Random) -> str:
    left, last = rng.choice([("[", "]"), ("(", ")"), ("[", "]")])
    nested = ", ".join(f"{left}{', '.join(map(str, row))}{last}" for row in entries)
    if len(entries[0]) == 1 or rng.random() < 0.4:
        return _latex(entries).replace("pmatrix", rng.choice(["bmatrix", "pmatrix"]))
    return f"{left}{nested}{last}"


def empty_condition(rng: random.Random) -> Case:
    """What always or never holds, for something else that always or never holds."""
    a, b = rng.randrange(1, 9), rng.randrange(1, 9)
    always = [f"x^2+{a}>0", f"x^2-{a}x+{a * a}>0", r"|x|\ge 0", rf"(x-{a})^2\ge 0", "x=x", "0=0", f"x<x+{b}",
              r"x\ge x", f"e^x+{a}>0", rf"\sin x\le {a}", f"x^4+{a}x^2+{b}>0", f"{b}>0"]  # fmt: skip
    never = [
        f"x^2+{a}<0",
        "x<x",
        r"x\ne x",
        f"|x|<-{b}",
        f"(x-{a})^2<0",
        f"x>x+{b}",
        f"e^x<-{a}",
        f"x^2+{a}x+{a * a}<0",
    ]
    kind = rng.choice([always, never])
    gold, claimed = rng.sample(kind, 2)
    return wrong("empty condition", claimed, gold)


def zero_power(rng: random.Random) -> Case:
    r"""A power or a quotient of what is zero, for one: `(\sin\pi)^0`."""
    a, b = distinct(rng, 2, 30)
    zeros = [
        "0", r"\sin\pi", rf"(\sqrt{{{a}}}-\sqrt{{{a}}})", rf"(\sqrt{{{a}}}^2-{a})", r"(e^{i\pi}+1)", f"({a}-{a})",
        rf"(\log_2 {2**a}-{a})", rf"(\sin^2{b}+\cos^2{b}-1)", r"\cos\frac{\pi}{2}", r"\tan\pi", "(x-x)", r"\ln 1",
        rf"({a}x-{a}x)", r"(\sin^2x+\cos^2x-1)", rf"(\sqrt{{{a * a}}}-{a})",
    ]  # fmt: skip
    one, other = rng.choice(zeros), rng.choice(zeros)
    form = rng.choice([
        rf"\left({one}\right)^0", rf"\frac{{{one}}}{{{other}}}", rf"\left({one}\right)^{{{other}}}",
        rf"{b}\cdot\left({one}\right)^0",
    ])  # fmt: skip
    return wrong(
        "power of zero", form, str(b) if form.startswith(f"{b}\\cdot") else rng.choice(["1", "1", "0"])
    )


MAKERS: dict[str, tuple[Maker, ...]] = {
    "groups": (grouped,),
    "letters": (letters,),
    "names of values": (named_values,),
    "transposes": (transposed,),
    "empty conditions": (empty_condition,),
    "zeros": (zero_power,),
    "right forms": (same_grouped, free_letters, same_named, same_matrix),
}
