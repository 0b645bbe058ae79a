import pytest

from foresail.curate.extract.page import flatten, read_page
from foresail.curate.extract.render.maths.mathml import mathml_to_latex


def latex(mathml: str) -> str:
    return mathml_to_latex(flatten(f"<math>{mathml}</math>"), 0)


SUM = "<munderover><mo>∑</mo><mrow><mi>k</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>"
HALF = "<mfrac><mn>1</mn><mn>2</mn></mfrac>"
ROWS = (
    "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>"
    "<mtr><mtd><mn>3</mn></mtd><mtd><mi>x</mi></mtd></mtr></mtable>"
)
CASES = {
    "<msup><mi>x</mi><mn>2</mn></msup><mo>−</mo><msub><mi>a</mi><mn>10</mn></msub>": "x^2-a_{10}",
    f"{SUM}<msub><mi>a</mi><mi>k</mi></msub>": r"\sum_{k=1}^n a_k",
    f"<mrow><mo>(</mo>{HALF}<mo>)</mo></mrow><mo>(</mo><mi>y</mi><mo>)</mo>": r"\left(\frac{1}{2}\right)(y)",
    f"<mo>|</mo>{HALF}<mo>|</mo><mo>|</mo><mi>z</mi><mo>|</mo>": r"\left|\frac{1}{2}\right||z|",
    f"<mo>[</mo>{ROWS}<mo>]</mo>": "\\begin{bmatrix}\n1 & 2\\\\\n3 & x\n\\end{bmatrix}",
    f"<mi>f</mi><mo>=</mo><mo>{{</mo>{ROWS}": "f=\\begin{cases}\n1 & 2\\\\\n3 & x\n\\end{cases}",
    '<mo>(</mo><mfrac linethickness="0pt"><mi>n</mi><mi>k</mi></mfrac><mo>)</mo>': r"\binom{n}{k}",
    "<mroot><mi>x</mi><mn>3</mn></mroot><msqrt><mn>2</mn><mi>y</mi></msqrt>": r"\sqrt[3]{x}\sqrt{2y}",
    "<mi>sin</mi><mo>\u2061</mo><mi>x</mi><mi>rank</mi><mo>\u2061</mo><mi>A</mi>": r"\sin x\operatorname{rank}A",
    "<mover><mi>x</mi><mo>˙</mo></mover><mover><mrow><mi>A</mi><mi>B</mi></mrow><mo>¯</mo></mover>": (
        r"\dot{x}\overline{AB}"
    ),
    "<munder><munder><mi>a</mi><mo>⏟</mo></munder><mtext>a sum</mtext></munder>": r"\underbrace{a}_{\text{a sum}}",
    "<munder><mi>lim</mi><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder><mi>g</mi>": r"\lim_{x\to0}g",
    "<mmultiscripts><mi>X</mi><mn>1</mn><mn>2</mn><mprescripts></mprescripts><mn>3</mn><none></none>"
    "</mmultiscripts>": "{}_3X_1^2",
    "<msup><mi>f</mi><mo>′</mo></msup><msup><mi>g</mi><mrow><mo>′</mo><mo>′</mo></mrow></msup>": "f'g''",
    '<mi mathvariant="bold">V</mi><mi mathvariant="double-struck">R</mi><mi>𝔤</mi><mi>ℝ</mi>': (
        r"\mathbf{V}\mathbb{R}\mathfrak{g}\mathbb{R}"
    ),
    '<mfenced open="[" close=")"><mn>0</mn><mn>1</mn></mfenced>': "[0,1)",
    "<mtable><mlabeledtr><mtd><mtext>(7)</mtext></mtd><mtd><mi>a</mi></mtd></mlabeledtr></mtable>": r"a \tag{7}",
    '<menclose notation="box"><mi>a</mi></menclose><mspace width="1em"></mspace><mi>b</mi>': r"\boxed{a}\quad b",
    "<mn>5</mn><mo>%</mo><mtext>of a_b</mtext>": r"5\%\text{of a\_b}",
    "<mfrac><mi>a</mi></mfrac><msup></msup><mtd><mi>x</mi></mtd>": r"\frac{a}{}x",
}


@pytest.mark.parametrize("mathml", CASES)
def test_mathml_becomes_latex(mathml: str) -> None:
    assert latex(mathml) == CASES[mathml]


def test_prefixes_of_the_namespace_do_not_matter() -> None:
    page = read_page("<m:math><m:mfrac><m:mi>a</m:mi><m:mi>b</m:mi></m:mfrac></m:math>")
    assert mathml_to_latex(page, page.names.index("m:math")) == r"\frac{a}{b}"


@pytest.mark.parametrize("tag", ["msqrt", "mrow", "msup", "mfrac", "mtable"])
def test_a_formula_nested_a_hundred_thousand_deep(tag: str) -> None:
    depth = 100_000
    assert latex(f"<{tag}>" * depth + "<mi>x</mi>" + f"</{tag}>" * depth) == "x"


def test_a_long_row_is_read_in_one_pass() -> None:
    row = "<mo>(</mo>" * 5_000 + "<mi>α</mi>" * 5_000 + "<mo>|</mo>" * 5_000
    assert latex(row).count("\\alpha") == 5_000
