# ruff: noqa: E501 (tables of pieces)
r"""Attacks by depth, length and nesting: answers that a verifier must refuse without failing and without long work.

    ((((1/2*3/2*3…)/2*3…)/2*3…) for 104729;  \sqrt{\sqrt{…}};  x<1 \text{ or } x<2 \text{ or } …;  \frac\frac\frac…

Every construct of the notation is nested, repeated along a line, and both at once. Pieces of one kind (values, sets,
conditions, or anything) go together, so that many of the texts can be read; others are cut. No piece holds a number
of the right answers, so they are wrong. Of `twins`, two trees of one shape, and of `many_values` nobody knows the
truth: there only a failure counts.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from attack_case import Case, Maker

BOX, RESPONSE = 20_000, 100_000  # characters that the verifier promises to bear


class Kind(NamedTuple):
    """Pieces that fit each other: what holds something in the place of @, what joins, precedes and follows it."""

    nests: tuple[str, ...]
    joins: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    atoms: tuple[str, ...]


VALUES = Kind(
    (
        "(@)", "[@]", "{@}", r"\left(@\right)", "|@|", r"\lvert @\rvert ", r"\lfloor @\rfloor ", r"\lceil @\rceil ", r"\lVert @\rVert ",
        r"\frac{1}{@}", r"\frac{@}{2}", r"\frac{1}{1+@}", r"\sqrt{@}", r"\sqrt{1+@}", r"\sqrt[3]{@}", r"\sqrt[@]{2}", r"\binom{9}{@}",
        r"\binom{@}{2}", r"{@ \choose 2}", r"{@ \over 2}", "x^{@}", "2^{@}", "a_{@}", r"\overline{@}", r"\vec{@}", r"\hat{@}", r"\mathbf{@}",
        "-(@)", r"\sin(@)", r"\sin^2(@)", r"\log_{@}2", r"\log_2(@)", r"\ln(x+@)", r"\exp(@)", r"\max(1,@)", r"\gcd(4,@)", "f(@)", "P(@)",
        r"\Gamma(@)", "(@)!", "(@)^2", "(@)^{-1}", r"(@)\%", r"(@)^\circ ", r"\sum_{k=1}^{@}k", r"\sum_{k=1}^{3}(@)", r"\int_0^1 @ \,dx",
        r"\int_{@}^{1} x\,dx", r"\lim_{x\to 0}(@)", r"\prod_{k=1}^{2}(@)", "C_{@}^{2}", "_{10}C_{@}", r"(@\bmod 7)", r"(1\pm @)", r"(@\pm 1)",
        "(@)x", "(@)/3", "(@+x)^2", "|x+@|", "2(@)", r"e^{\ln(@)}", r"\operatorname{lcm}(4,@)", r"\underline{@}", r"\max\{1,@\}", r"(@)\text{ cm}",
        r"(@)\begin{pmatrix}1&x\\0&1\end{pmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}(@)", r"\begin{vmatrix}@&1\\1&2\end{vmatrix}",
    ),
    ("+", "-", "*", r"\cdot ", "/", r"\div ", r"\bmod ", r"\pm ", r"\mp ", "", " ", "^", r"\times ", "/2*", "*2/", "/3\\bmod ", "/x+", r"\pm 1/", "+-"),
    ("-", "+", r"\pm ", r"\sqrt", r"\frac1", r"\frac", r"\sin ", r"\ln ", r"\bar ", r"\angle ", "{}", "2^", "x^", "a_", r"\vec ", r"\hat ", r"\log_", r"\exp "),
    ("!", "!!", "%", r"\%", "^2", "^{-1}", r"^\circ ", "^{x}", "/x", "²", r"\degree ", r"\bmod 2", "/2", r"\pm 1", "*3/2", "^T", r"\text{ cm}", "x", "(x)"),
    (
        "1", "2", "7", "x", "y", "i", "e", "n", r"\pi", r"\infty", "0.5", "3/4", r"\frac12", "x_1", "f(x)", "9^{9^{9^9}}", "1e999", "10^{-999}",
        r"0.\overline{3}", r"\sqrt2", r"\sin x", "3!", "|x|", "999!", "2^{9999}", r"\lfloor x\rfloor", r"\begin{pmatrix}1&x\\0&1\end{pmatrix}",
        r"\begin{pmatrix}x\end{pmatrix}", r"\int_0^1 x\,dx", r"\sum_{k=1}^n k", r"\sqrt{2}+\sqrt{3}", "x^2+1", r"2\pi/3", r"30^\circ", r"\ln x", "3+4i",
        r"\binom{9}{2}", "AB", "1011_2", "1,234",
    ),
)  # fmt: skip
SETS = Kind(
    (
        "(@)", "{@}", r"\left(@\right)", r"(@)\cup(2,3)", r"(@)\cap(0,9)", r"(@)\setminus\{1\}", r"[5,6]\cup(@)", "(1,@)", "(@,1)", r"\{1,@\}", r"\{@\}",
        "[0,@)", r"\langle @,1\rangle ", "(1;@,2)", r"\{x\mid x\in @\}", "x\\in @", r"\begin{pmatrix}@&1\\1&1\end{pmatrix}", "(@ : 2)", "1,@", "(x=@)",
        r"\bigcup_{k=1}^{5}@", r"\begin{cases}@\\1\end{cases}", "]@,9[", r"\lbrace @\rbrace ", "[@]", "[[@,1],[2,3]]",
    ),
    (r"\cup ", r"\cap ", r"\setminus ", ",", ", ", ";", "U", r"\cup(2,3)\cap", r"\text{ and }", r"\text{ or }", "&", r"\\", ":", r"\times ", "-"),
    (r"x\in ", r"\{", "(", "[", r"\pm ", r"(0,1)\cup ", r"\mathbb{R}\setminus", "1:", "1,", r"\mathbb{R}-"),
    (r"\cup(0,1)", r"\cap[0,5)", r"\setminus\{2\}", ",7", r"\}", ")", ":3", "^T", r"\cup\{9\}", ",...", r",\ldots"),
    (
        "(0,1)", "[2,3)", r"\{1,2\}", r"\mathbb{R}", "x<5", r"\emptyset", r"(1,2,\ldots,9)", r"(-\infty,x)", r"(\sqrt2,\pi)", "1", "x", r"\{x\mid x>3\}",
        r"\{2x\mid x>3\}", "(1,2)", "[0,1]", r"\mathbb{Z}", r"\{1,2,3,\ldots\}", r"(9^{9^9},\infty)", "[1,[2,3]]",
    ),
)  # fmt: skip
CONDITIONS = Kind(
    (
        "(@)", "{@}", r"\{x\mid @\}", r"\{@\mid x>1\}", "(x=@)", "(x<@)", "(@<9)", r"x<1\text{ or }(@)", r"\begin{cases}@\\x=1\end{cases}", "f(@)=2",
        r"\begin{aligned}@\end{aligned}", r"\begin{array}{cc}@\end{array}", "(@,y=2)", "(@;y=2)", r"\text{if }@", r"y=@", r"1\le @", r"\left.@\right|",
    ),
    ("=", "<", r"\le ", r"\ne ", r"\approx ", r"\text{ or }", r"\text{ and }", " or ", " and ", ",", ";", r"\lor ", r"\land ", r"\\", "=x=", ">", r"\in ", r"\to "),
    ("x=", "x<", r"\text{about }", "1<", "y=", r"x\in ", "f(x)=", "|x|<", "(", r"\begin{cases}"),
    ("=1", "<7", r"\text{ or }x=3", ",y=2", r"\approx 0.33", r"\\", ";x=1", r"\ne\pm 1", ")", r"\end{cases}", r"\text{ and }x>1", r",k\in\mathbb{Z}"),
    ("x<5", r"x\ne 3", "x=1", "y>2", "2x+3y=5", "|x|<4", r"x\in(0,1)", "x^2<4", "f(x)>3", "x_1=2", "1", "x", r"x\ne\pm 1", "a+b=7", r"x^3-x\ge 0", "(x,y)=(1,2)"),
)  # fmt: skip
WORDS = Kind(
    (r"\text{@}", r"\boxed{@}", r"\operatorname{@}", r"\text{(A) @}", r"\text{the answer is @}", r"\color{red}{@}", r"\phantom{@}", "<@>", "{@}_{2}", "$@$"),
    (" to ", ".", "..", "|", "(", ")", r"\mid ", "><", "_", r"\over ", r"\choose ", " ", "?", r"\Rightarrow ", r"\equiv ", "\n"),
    (r"\$", "about ", r"\triangle ", r"\left", r"\sum ", r"\int ", r"\not", r"\lim_{x\to 0}", r"\text{", "#### ", "{", r"\binom2", r"\begin{matrix}"),
    ("'", "_1", "_{2}", " million", "^{th}", r"^{\prime}", "°", "}", "]", r"\rangle", "...", "½", " per hour", "$", "{}", "e5", "10''", r"\ldots"),
    ("twenty-four", "一百", r"\text{day}", "2,5", "5'10''", "3:05 pm", r"5\text{ cm}", "yes", "C", "7 hours 30 minutes", "1/0", "NaN", r"\foo", r"0x10", "第"),
)  # fmt: skip
ANYTHING = Kind(*(sum(pieces, ()) for pieces in zip(VALUES, SETS, CONDITIONS, WORDS, strict=True)))
KINDS = (VALUES, VALUES, SETS, CONDITIONS, ANYTHING)

FRAMES = (
    r"\boxed{@}", r"\boxed{@}", r"\boxed{@}", r"\boxed{x=@}", r"\boxed{\text{(B) }@}", r"\boxed{\text{the answer is } @}", r"\boxed{\pm@}",
    "The answer is $@$.", "#### @", "@", r"\boxed{@} or \boxed{1}", r"\boxed{1}, \boxed{@}", r"\boxed{@", "<think>@</think> @", r"\[@\]", r"\boxed{-@,2}",
)  # fmt: skip
GOLDS = (
    "104729", "-104729", r"\frac{104729}{15485863}", "0.104729", r"104729\pi", r"\sqrt{104729}", "(104729,1299709)", r"(-\infty,104729)",
    r"\{104729,1299709\}", "104729,1299709", "x^2+104729x", r"\sin(104729x)", "y=104729x+1", "x=104729", "x>104729", r"x\ne 104729",
    r"(0,104729)\cup(1299709,\infty)", r"\begin{pmatrix}104729&2\\3&x\end{pmatrix}", r"\sum_{k=1}^{n} (k^2+104729)", "a_{104729}",
    r"\int_0^1 (x+104729)\,dx", r"\sum_{k=1}^{\infty}\frac{104729}{k^2}", r"104729\text{ cm}", r"104729^\circ", r"104729\%", "104729:3",
    r"104729 \bmod 1299709", r"\pm 104729", "104729+i", r"x^2+y^2=104729", r"|x|<104729", r"x<0\text{ or }x>104729", "104729!",
    r"2^{104729}", r"\lfloor x\rfloor+104729", "|x-104729|", r"\{x\mid x>104729\}", r"\{2x+104729\mid x>1\}", "1:04:29 pm", "f(104729)",
    r"\max(x,104729)", r"x\in[0,104729]", r"\text{Tuesday 104729}", r"\frac{x+104729}{x-1}", r"e^{104729x}", "104729x>1", r"104729\sqrt2,3",
    r"\pi+104729k\pi, k\in\mathbb{Z}", r"\gcd(x,104729)", "104729_{16}", "((104729,1),(2,3))", r"\int_0^{104729} x\,dx, \sum_{k=1}^n k^2",
)  # fmt: skip


def size(rng: random.Random, largest: int) -> int:
    """Small ones as often as large ones: size(rng, 1000) -> 3."""
    return round(largest ** rng.random())


def nested(rng: random.Random, kind: Kind, core: str, depth: int) -> str:
    """The core inside so many brackets or commands, of one sort or a few."""
    shapes = [rng.choice(kind.nests).partition("@") for _ in range(rng.choice((1, 1, 2, 3)))]
    shells = [shapes[level % len(shapes)] for level in range(depth)]
    return (
        "".join(before for before, _, _ in shells) + core + "".join(after for *_, after in reversed(shells))
    )


def chain(rng: random.Random, kind: Kind, pieces: list[str], length: int) -> str:
    """Pieces side by side, joined by one sign or by two in turns."""
    joins = [rng.choice(kind.joins) for _ in range(rng.choice((1, 1, 2)))]
    return "".join(
        pieces[place % len(pieces)] + (joins[place % len(joins)] if place < length - 1 else "")
        for place in range(length)
    )


def pieces(rng: random.Random, kind: Kind) -> list[str]:
    """One atom or a few to repeat; or sixty that differ."""
    if rng.random() < 0.8:
        return [rng.choice(kind.atoms) for _ in range(rng.choice((1, 1, 2, 3)))]
    shape = rng.choice(
        (
            "@",
            "x<@",
            "(@,x)",
            r"\sqrt{@}",
            "x_{@}",
            r"\frac{1}{x+@}",
            "|x-@|",
            "x=@",
            r"(@,\infty)",
            "x^{@}",
            "@!",
            "f(@)",
        )
    )
    return [shape.replace("@", str(number)) for number in range(2, 62)]


def deep(rng: random.Random) -> Case:
    """One construct, or a few in turns, inside each other."""
    kind = rng.choice(KINDS)
    return case(rng, "nested", nested(rng, kind, rng.choice(kind.atoms), size(rng, 2000)))


def long(rng: random.Random) -> Case:
    kind = rng.choice(KINDS)
    return case(rng, "repeated", chain(rng, kind, pieces(rng, kind), size(rng, 4000)))


def signed(rng: random.Random) -> Case:
    """Signs before and after a value, which make a deep tree without any bracket."""
    kind = rng.choice(KINDS)
    before, after = (rng.choice((0, 1)) * size(rng, 2000) for _ in range(2))
    text = rng.choice(kind.before) * before + rng.choice(kind.atoms) + rng.choice(kind.after) * after
    return case(rng, "signs in a row", text)


def towers(rng: random.Random) -> Case:
    """Chains inside brackets inside chains: each is short and their product is deep."""
    kind = rng.choice(KINDS)
    nest, join, length = rng.choice(kind.nests), rng.choice(kind.joins), rng.randrange(1, 60)
    tail = rng.choice((
        "".join(join + rng.choice(kind.atoms) for _ in range(length)), (join + rng.choice(kind.atoms)) * length,
        rng.choice(kind.after) * length, rng.choice(kind.before) * length,
    ))  # fmt: skip
    text = rng.choice(kind.atoms)
    leading = rng.random() < 0.3
    for _ in range(rng.randrange(1, 27)):
        text = nest.replace("@", tail + text if leading else text + tail)
        if len(text) > BOX:
            break
    return case(rng, "chains in brackets", text)


def mixture(rng: random.Random, kind: Kind, depth: int) -> str:
    """A random text of the notation."""
    pieces = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        inner = kind if rng.random() < 0.8 else rng.choice(KINDS)
        piece = mixture(rng, inner, depth - 1) if depth else rng.choice(inner.atoms)
        dressing = rng.random()
        if dressing < 0.5:
            piece = rng.choice(kind.nests).replace("@", piece)
        elif dressing < 0.6:
            piece = rng.choice(kind.before) + piece
        elif dressing < 0.7:
            piece += rng.choice(kind.after) * size(rng, 20)
        elif dressing < 0.8:
            piece = chain(rng, kind, [piece], size(rng, 20))
        pieces.append(piece[: BOX // 4])
    return rng.choice(kind.joins).join(pieces)[:BOX]


def mixed(rng: random.Random) -> Case:
    return case(rng, "mixtures", mixture(rng, rng.choice(KINDS), rng.randrange(7)))


def repeated_mixture(rng: random.Random) -> Case:
    kind = rng.choice(KINDS)
    piece = mixture(rng, kind, rng.randrange(4))
    return case(rng, "mixtures repeated", chain(rng, kind, [piece], size(rng, 1 + BOX // (len(piece) + 1))))


def unbalanced(rng: random.Random) -> Case:
    """Any of the others with pieces cut out."""
    made = rng.choice((deep, signed, towers, mixed))(rng)
    text = made.response
    for _ in range(rng.choice((1, 1, 2, 5))):
        start = rng.randrange(len(text) + 1)
        text = text[:start] + text[start + size(rng, 40) :]
    return made._replace(family="cut", response=text)


def costly_values(rng: random.Random) -> Case:
    """Numbers and functions that take long to work out, one or many of them."""
    n, k = rng.choice((300, 3000, 9999, 19_999)), rng.randrange(2, 60)
    piece = rng.choice([
        f"{n}!", f"{n}!!", rf"\binom{{{n}}}{{{n // 3}}}", f"{k}^{{{n}}}", f"{k}^{{-{n}}}", f"{k}e{min(n, 4999)}", f"{k}e-{min(n, 4999)}",
        rf"\sqrt{{{n}!+{k}}}", rf"\sqrt[{k}]{{{k}^{{{n}}}+1}}", rf"\ln({n}!)", rf"\sin({k}^{{{n}}})", rf"\sin({k}\cdot10^6)", rf"\Gamma({n}.5)",
        "7" * (n // 4), "0." + "7" * (n // 4), rf"0.\overline{{{'12345679' * (n // 40)}}}", rf"\frac{{1}}{{{k}^{{{n}}}+1}}", rf"e^{{{n}}}-e^{{{n}}}",
        rf"\operatorname{{lcm}}({k}^{{{n}}},{k + 1}^{{{n}}},{k + 2}^{{{n}}})", rf"\gcd({n}!,{k}^{{{n}}})", rf"(1+\sqrt{k})^{{{n}}}", rf"{k}^{{{k}^{{{n}}}}}",
        rf"(x+{k})^{{{n}}}", f"x^{{{n}}}-{k}", rf"\frac{{x^{{{k}}}-1}}{{x-{k}}}", f"|x^{k}-{n}|", rf"\lfloor {k}x\rfloor", rf"\max(x,{k},y)", f"x^{k}<{n}",
        rf"\sqrt{{x^2+{k}}}", rf"\int_0^{k} x^{k}\,dx", rf"\sum_{{j=1}}^{{{n}}} j^{k}", rf"\sin({k}x)^{{{k}}}", rf"\arctan({k}x)", rf"x^x+{k}",
        rf"\log_{{{k}}}({n}!)", rf"\tan({k}^\circ)", rf"(\sqrt{{{k}}},\sqrt{{{n}}})", rf"x\in[0,{k}!]", rf"\cosh({n})", f"{10**k}_{{{2 + k % 35}}}",
    ])  # fmt: skip
    count = size(rng, 1 + BOX // len(piece))
    text = rng.choice(
        (",", "+", r"\cdot ", r"\cup ", "/", r"\text{ or }", "=", "<", "^", ":", r"\pm ", ";", "-")
    ).join([piece] * count)
    if rng.random() < 0.3:
        text = nested(rng, rng.choice(KINDS), text, size(rng, 30))
    return case(rng, "costly values", text)


def many_values(rng: random.Random) -> Case:
    """Many values side by side, each of them right or costly, so that all are looked at."""
    gold = rng.choice(GOLDS)
    same = [
        gold,
        f"({gold})",
        f"{{{gold}}}",
        rf"\left({gold}\right)",
        f"{gold}+0",
        f"1\\cdot({gold})",
        f"{gold}+x-x",
        f"({gold})^1",
    ]
    costly = [rf"{gold}+0\cdot\sqrt{{{rng.randrange(10**6)}!+{k}}}" for k in range(rng.choice((1, 9, 40)))]
    values = [rng.choice(same + costly) for _ in range(size(rng, 500))]
    box = rng.choice((r"\boxed{@}", r"\boxed{@}", "$@$"))
    between = rng.choice((" = ", " or ", ", ", " and ", " or rather ", "\n"))
    text = between.join(box.replace("@", value) for value in values)
    return Case("many values", text[:RESPONSE], gold, right=None)


def twins(rng: random.Random) -> Case:
    """Two trees of one shape, so that the comparison goes to their ends."""
    kind, seed, depth, length = rng.choice(KINDS), rng.random(), size(rng, 16), size(rng, 6)
    claimed, gold = (
        chain(
            random.Random(seed),
            kind,
            [nested(random.Random(seed), kind, rng.choice(kind.atoms), depth)],
            length,
        )
        for _ in range(2)
    )
    return Case("one shape", rng.choice(FRAMES).replace("@", claimed), gold, right=None)


def case(rng: random.Random, family: str, text: str) -> Case:
    """In a frame, for one of the right answers; once in a while longer than what is read."""
    text = text[: BOX if rng.random() < 0.9 else RESPONSE - 100]
    return Case(family, rng.choice(FRAMES).replace("@", text), rng.choice(GOLDS))


MAKERS: dict[str, tuple[Maker, ...]] = {
    "depth": (deep, signed, towers),
    "length": (long, costly_values, many_values),
    "mixtures": (mixed, repeated_mixture, unbalanced, twins),
}
