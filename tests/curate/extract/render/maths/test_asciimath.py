import pytest

from foresail.curate.extract.render.maths.asciimath import asciimath_to_latex

CASES = {
    "sum_(k=1)^n k = 1+2+ cdots +n=(n(n+1))/2": r"\sum_{k=1}^n k=1+2+\cdots+n=\frac{n(n+1)}{2}",
    "x=(-b +- sqrt(b^2 - 4ac))/(2a)": r"x=\frac{-b\pm\sqrt{b^2-4ac}}{2a}",
    "[[1,2],[3,4]]": "\\begin{bmatrix}\n1 & 2\\\\\n3 & 4\n\\end{bmatrix}",
    "[[a,|,b],[c,|,d]]": "\\left[\\begin{array}{c|c}\na & b\\\\\nc & d\n\\end{array}\\right]",
    "{(x, if x>=0),(-x, if x<0):}": (
        "\\begin{cases}\nx & \\text{if }x\\ge0\\\\\n-x & \\text{if }x<0\n\\end{cases}"
    ),
    "sin x/2 sin^2x log_2 8": r"\frac{\sin x}{2}\sin^2x\log_2 8",
    "dy/dx e^-x f(x)/g(x)": r"\frac{dy}{dx}e^{-x}\frac{f(x)}{g(x)}",
    "hat x bar(ab) vec v root(3)(x)": r"\hat{x}\overline{ab}\vec{v}\sqrt[3]{x}",
    '{x | x > 0} |y| "two words" text(if x)': r"\{x|x>0\}|y|\text{two words}\text{if x}",
    "alpha !in RR => not A ^^ B": r"\alpha\notin\mathbb{R}\Rightarrow\neg A\wedge B",
    "lim_(x->oo) 1/x": r"\lim_{x\to\infty}\frac{1}{x}",
    "((( x_10^2)] a/ frac(b)": r"(((x_{10}^2)]\frac{a}{\frac{b}{}}",
    "": "",
}


@pytest.mark.parametrize("source", CASES)
def test_asciimath_becomes_latex(source: str) -> None:
    assert asciimath_to_latex(source) == CASES[source]


@pytest.mark.parametrize("piece", ["(", "[", "sqrt ", "|", "x^", "1/", "sin ", "((a,b),", "f(", "text("])
def test_twenty_thousand_characters_that_never_close(piece: str) -> None:
    latex = asciimath_to_latex(piece * (20_000 // len(piece)))
    assert latex
    assert len(latex) < 400_000
