"""Texts meant to hang, overflow or break a grader: at most 100,000 characters each with a box, by name.

The tests ask only for a verdict on each; `benchmarks/verifier/math_verifier.py` measures what it costs.
"""

from random import Random

LIMIT = 100_000 - len(r"\boxed{}")  # characters, so that a box around a text is within the verifier's promise


def nested(opening: str, core: str, closing: str, depth: int) -> str:
    """nested("(", "1", ")", 2) -> "((1))" """
    depth = min(depth, (LIMIT - len(core)) // (len(opening) + len(closing)))
    return opening * depth + core + closing * depth


def filled(piece: str) -> str:
    """As many copies as fit."""
    return piece * (LIMIT // len(piece))


def deep_nesting() -> dict[str, str]:
    deep = 50_000
    return {
        "deep round brackets": nested("(", "1", ")", deep),
        "deep square brackets": nested("[", "1", "]", deep),
        "deep braces": nested("{", "1", "}", deep),
        "deep set braces": nested(r"\{", "1", r"\}", deep),
        "deep left right": nested(r"\left(", "1", r"\right)", deep),
        "deep angle brackets": nested(r"\langle ", "1", r"\rangle ", deep),
        "deep bars": nested("|", "-1", "|", deep),
        "deep floors": nested(r"\lfloor ", "1.5", r"\rfloor ", deep),
        "deep fractions": nested(r"\frac{1}{1+", "1", "}", deep),
        "deep numerators": nested(r"\frac{", "1", "}{2}", deep),
        "brace-less fractions": r"\frac" * 15_000 + "1" * 15_001,
        "deep roots": nested(r"\sqrt{", "2", "}", deep),
        "deep roots of sums": nested(r"\sqrt{1+", "2", "}", deep),
        "deep cube roots": nested(r"\sqrt[3]{", "-8", "}", deep),
        "deep root indices": nested(r"\sqrt[", "2", "]{2}", deep),
        "deep powers": nested("x^{", "x", "}", deep),
        "deep number powers": nested("2^{", "1", "}", deep),
        "caret chain": filled("9^"),
        "deep subscripts": nested("a_{", "1", "}", deep),
        "deep sines": nested(r"\sin(", "1", ")", deep),
        "deep logs": nested(r"\log(", "10", ")", deep),
        "deep logs of large": nested(r"\ln(", "10^{100}", ")", 400),
        "deep exponentials": nested(r"\exp(", "1", ")", deep),
        "deep factorials": nested("(", "3", ")!", deep),
        "deep text": nested(r"\text{", "7", "}", deep),
        "deep boxes": nested(r"\boxed{", "7", "}", deep),
        "deep binomials": nested(r"\binom{", "9", "}{2}", deep),
        "deep overlines": nested(r"\overline{", "3", "}", deep),
        "deep dots": "0." + nested(r"\dot{", "3", "}", deep),
        "deep matrices": nested(r"\begin{pmatrix}", "1", r"\end{pmatrix}", deep),
        "deep tuples": nested("(1,", "2", ")", deep),
        "deep sets": nested(r"\{1,", "2", r"\}", deep),
        "deep absolute powers": nested("|x+", "1", "|^2", deep),
        "deep mixed brackets": nested("([{", "1", "}])", deep),
        "crossed brackets": filled("([)]"),
    }


def unbalanced() -> dict[str, str]:
    return {
        "open braces": filled("{"),
        "closed braces": filled("}"),
        "open boxes": filled(r"\boxed{"),
        "open boxes with numbers": filled(r"\boxed{7"),
        "box and open braces": r"\boxed{" + "{" * 90_000,
        "open fractions": filled(r"\frac{"),
        "open begin": filled(r"\begin{pmatrix}"),
        "closed end": filled(r"\end{pmatrix}"),
        "open left": filled(r"\left("),
        "open text": filled(r"\text{"),
        "open roots": filled(r"\sqrt["),
        "dollars": filled("$"),
        "display openings": filled(r"\["),
        "half-open intervals": filled("[0,1)"),
        "French intervals": filled("]0,1["),
        "escaped braces": filled(r"\{"),
        "backslashes": filled("\\"),
        "backslash braces": filled(r"\\{"),
    }


def long_runs() -> dict[str, str]:
    """One regular expression each that would backtrack."""
    pieces = {
        "spaces": " ",
        "newlines": "\n",
        "blank lines": " \n",
        "tabs": "\t",
        "thin spaces": r"\,",
        "ties": "~",
        "digits": "9",
        "zeros": "0",
        "digits and commas": "1,",
        "digit groups": "123,",
        "digits and spaces": "1 ",
        "digits and points": "1.",
        "digits and apostrophes": "1'",
        "digits and braced commas": "123{,}",
        "commas": ",",
        "points": ".",
        "minuses": "-",
        "pluses": "+",
        "plus minus": "+-",
        "signs and spaces": "- ",
        "stars": "*",
        "slashes": "1/",
        "carets": "^",
        "primes": "'",
        "bangs": "!",
        "equals": "x=",
        "less than": "x<",
        "percents": "%",
        "letters": "a",
        "words": "answer ",
        "colons": "1:",
        "underscores": "1_",
        "bars": "|",
        "quotes": '"',
        "asterisk pairs": "**",
        "hashes": "#",
        "marks": "#### ",
        "marks with numbers": "#### 7\n",
        "phrases": "the answer is ",
        "phrases with numbers": "The answer is 7. ",
        "labels": "Answer: ",
        "final labels": "**Final Answer**\n",
        "or": "7 or ",
        "and": r"7 \text{ and } ",
        "Chinese phrases": "答案是",
        "thinking": "<think>",
        "thoughts": "<think>x</think>",
        "thinking ends": "</think>",
        "empty boxes": r"\boxed{}",
        "boxes": r"\boxed{7} ",
        "boxes of boxes": r"\boxed{\boxed{7}} ",
        "corrected boxes": r"\boxed{3} wait \boxed{7} ",
        "box words": r"\boxed ",
        "formulas": "$7$ ",
        "display formulas": r"\[7\] ",
        "units": r"7\text{ cm}",
        "degrees": r"^\circ",
        "plus-minus signs": r"1\pm",
        "roots": r"\sqrt",
        "fractions": r"\frac12",
        "fraction sum": r"\frac{1}{3}+",
        "spacing commands": r"\quad\;\!",
        "left": r"\left",
        "unknown commands": r"\foo",
        "unions": r"(0,1)\cup",
        "repeating marks": "0.(3)",
        "ellipses": "1...",
        "choices": "(A) 1 (B) 2 ",
        "assignments": "x=1,",
        "code fences": "```\n",
        "end tokens": "<|im_end|>",
        "tables": "| 7 ",
        "alignment marks": "&",
        "row breaks": r"\\",
    }
    return {f"run of {name}": filled(piece) for name, piece in pieces.items()}


def long_runs_in_their_place() -> dict[str, str]:
    """Where a pattern could read a run in many ways, or begins to read it anew at each character."""
    return {
        "open coordinates": "The answer is 8 or (" + "1," * 30,
        "open coordinates, long": "The answer is 8 or (" + "1, " * 900,
        "newlines between boxes": r"\boxed{1}" + "\n " * 60 + r"'\boxed{8}",
        "rules before a box": "So\n" + "-" * 90 + r"( \boxed{8}",
        "brackets after an answer": "The answer is 8" + "(" * 2_800 + "x wrong",
        "blanks after an answer": "The answer is 8" + " " * 2_800 + "not right",
        "formulas without an end": "The answer is 8, " + r"\[" * 1_400,
        "digits and letters of a base": r"\boxed{" + "1A" * 9_000 + "}",
        "pairs of digits": r"\boxed{" + "11," * 6_300 + "}",
        "blanks before an hour": r"\boxed{8" + " " * 9_000 + "m}",
        "signs before a statement": "-" * 90_000 + " the answer is 8",
    }


def huge_numbers() -> dict[str, str]:
    exact = {
        "power tower": "9^{9^{9^{9}}}",
        "plain power tower": "9^9^9^9^9^9",
        "python power tower": "9**9**9**9",
        "googolplex": "10^{10^{100}}",
        "tall tower": "10^{10^{10}}",
        "negative tower": "10^{-10^{10}}",
        "tower reciprocal": r"\frac{1}{10^{-10^9}}",
        "tower minus tower": "10^{10^{10}}-10^{10^{10}}+7",
        "tower over tower": r"\frac{10^{10^{10}}}{10^{10^{10}}}",
        "root of a tower": r"\sqrt{10^{10^{10}}}",
        "log of a tower": r"\log_{10}(10^{10^{10}})",
        "exponential tower": "e^{e^{e^{e^{e}}}}",
        "huge exponent": "2^{" + "9" * 50_000 + "}",
        "huge base": "9" * 50_000 + "^2",
        "huge base and exponent": "9" * 40_000 + "^{" + "9" * 40_000 + "}",
        "huge negative exponent": "2^{-" + "9" * 50_000 + "}",
        "huge product": r"\cdot".join(["9" * 1000] * 90),
        "long product of small": r"\cdot".join(["99999"] * 9000),
        "product of large powers": r"\cdot".join(["9^{99999}"] * 5000),
        "factorial": "1000000000!",
        "factorial of factorial": "((9!)!)!",
        "bangs": "9" + "!" * 1000,
        "factorial of a power": "(10^{100})!",
        "ratio of factorials": r"\frac{1000000!}{999999!}",
        "binomial": r"\binom{1000000000}{500000000}",
        "sum": r"\sum_{k=1}^{1000000000} k",
        "nested sums": r"\sum_{i=1}^{1000}\sum_{j=1}^{1000}\sum_{k=1}^{1000} ijk",
        "infinite sum": r"\sum_{k=1}^{\infty} \frac{1}{k^{1.0000001}}",
        "product": r"\prod_{k=1}^{1000000000} k",
        "integral": r"\int_0^{\infty} e^{-x^{x^{x}}} dx",
        "limit": r"\lim_{n\to\infty} (1+\frac1n)^{n^{n}}",
        "long decimal": "0." + "3" * 99_000,
        "long mantissa": "1." + "7" * 50_000 + r"\times 10^{" + "9" * 40_000 + "}",
        "scientific": "1e999999999",
        "scientific, long": "1e" + "9" * 1000,
        "negative scientific": r"1\times10^{-999999999}",
        "long recurring": r"0.\overline{" + "123456789" * 10_000 + "}",
        "long recurring with a lead": "0." + "7" * 40_000 + r"\overline{" + "1" * 40_000 + "}",
        "large base": "1" * 90_000 + "_{2}",
        "large hexadecimal": "F" * 90_000 + "_{16}",
        "base of many digits": "12_{" + "9" * 10_000 + "}",
        "root of huge index": r"\sqrt[999999999999]{2}",
        "root of a long integer": r"\sqrt{" + "9" * 50_000 + "}",
        "long fraction": r"\frac{" + "9" * 45_000 + "}{" + "7" * 45_000 + "}",
        "sum of long fractions": "+".join(rf"\frac{{1}}{{{p}}}" for p in range(10_007, 14_000, 2)),
        "rational power": r"2^{\frac{999999999}{1000000000}}",
        "complex power": r"(1+i)^{1000000000}",
        "power of a root": r"(1+\sqrt{2})^{1000000}",
        "golden power": r"\left(\frac{1+\sqrt5}{2}\right)^{1000000000}",
        "logarithm to base near one": r"\log_{1.0000000000000001} 2",
        "gamma": r"\Gamma(10^{50})",
        "zeta": r"\zeta(1.00000000000001)",
        "hyperbolic": r"\cosh(10^{10})",
        "exponential of a huge number": r"e^{10^{10}}",
        "double exponential difference": r"e^{10^{6}}-e^{10^{6}}",
        "sine of a huge number": r"\sin(10^{10^{5}})",
        "tangent near a pole": r"\tan(\frac{\pi}{2}-10^{-1000})",
        "tangent at a pole": r"\tan\frac{\pi}{2}",
        "zero over zero": r"\frac{\sin\pi}{\cos\frac{\pi}{2}}",
        "hidden zero denominator": r"\frac{1}{\sqrt{5+2\sqrt6}-\sqrt2-\sqrt3}",
        "zero to the zero": r"(\sqrt2-\sqrt2)^{\pi-\pi}",
        "cancellation": r"(10^{1000}+1)^{\frac{1}{2}}-10^{500}",
        "gcd": r"\gcd(10^{10^{6}},10^{10^{6}}+1)",
        "mod": r"7^{7^{7^{7}}} \bmod 10",
    }
    return {f"huge: {name}": text for name, text in exact.items()}


def algebra() -> dict[str, str]:
    noise = Random(3)
    letters = [chr(97 + n % 26) + ("" if n < 26 else f"_{{{n}}}") for n in range(50)]
    term = "+{}{}^{{{}}}{}^{{{}}}"
    terms = "".join(
        term.format(
            noise.randint(1, 99), noise.choice(letters), noise.randint(1, 9), noise.choice(letters), 2
        )
        for _ in range(3000)
    )
    return {
        "terms in fifty letters": terms[1:],
        "power of a long sum": "(" + "+".join(letters) + ")^{50}",
        "product of many sums": "".join(f"(x+{n})" for n in range(1, 9000)),
        "huge power of a sum": "(x+y)^{1000000}",
        "difference of huge powers": "(x+1)^{100000}-(x-1)^{100000}",
        "polynomial of huge degree": "x^{999999999999}+1",
        "long polynomial": "+".join(f"{n}x^{{{n}}}" for n in range(1, 7000)),
        "tower of letters": "x^{y^{z^{x^{y^{z}}}}}",
        "many plus-minus": "+".join([r"\pm 1"] * 60),
        "thousands of plus-minus": r"\pm 1" * 15_000,
        "plus-minus in tuples": ",".join([r"(\pm 1,\pm 2,\pm 3,\pm 4,\pm 5,\pm 6,\pm 7,\pm 8)"] * 500),
        "plus-minus in matrices": r"\begin{pmatrix}" + r"\pm1&" * 5000 + r"\end{pmatrix}",
        "trigonometric sum": "+".join(rf"\sin({n}x)\cos({n}y)" for n in range(1, 3000)),
        "trigonometric powers": r"\sin^{1000}x+\cos^{1000}x",
        "nested functions": r"\sin(\cos(\tan(\ln(\exp(\sqrt{x^{x}})))))" * 500,
        "many denominators": "+".join(rf"\frac{{1}}{{x+{n}}}" for n in range(1, 5000)),
        "sum of roots": "+".join(rf"\sqrt{{{n}}}" for n in range(2, 9000)),
        "sum of nested roots": "+".join(rf"\sqrt{{{n}+\sqrt{{{n + 1}}}}}" for n in range(2, 3000)),
        "equation of many letters": "+".join(letters) + "=" + "+".join(reversed(letters)),
        "chain of equations": "=".join(["x"] * 40_000),
        "chain of inequalities": "<".join(["x"] * 40_000),
        "absolute values": "+".join(f"|x-{n}|" for n in range(1, 9000)),
        "inequality of high degree": "x^{1000}-1>0",
        "letters glued": "abcdefghijklmnopqrstuvwxyz" * 3800,
        "functions of functions": "f(g(h(" * 10_000,
    }


def long_collections() -> dict[str, str]:
    numbers = ",".join(str(n) for n in range(1, 17_000))
    return {
        "long list": numbers,
        "long set": rf"\{{{numbers}\}}",
        "long tuple": f"({numbers})",
        "set of equal surds": r"\{" + ",".join([r"\sqrt2"] * 12_000) + r"\}",
        "set of near surds": r"\{" + ",".join(rf"\sqrt{{{n}}}+\frac1{{{n}}}" for n in range(2, 4000)) + r"\}",
        "set of tuples": ",".join(f"({n},{n + 1})" for n in range(1, 8000)),
        "union of intervals": r"\cup".join(f"({2 * n},{2 * n + 1})" for n in range(1, 5000)),
        "union of surd intervals": r"\cup".join(
            rf"(\sqrt{{{n}}},\sqrt{{{n + 1}}})" for n in range(2, 2500, 2)
        ),
        "large matrix": r"\begin{pmatrix}" + r"\\".join(["&".join("1" * 150)] * 300) + r"\end{pmatrix}",
        "product of matrices": r"\begin{pmatrix}1&1\\1&0\end{pmatrix}" * 2400,
        "power of a matrix": r"\begin{pmatrix}1&1\\1&0\end{pmatrix}^{1000000}",
        "ragged matrix": r"\begin{pmatrix}" + "&1" * 5000 + r"\\" * 5000 + r"\end{pmatrix}",
        "one long row": r"\begin{matrix}" + "1&" * 40_000 + r"\end{matrix}",
        "thousands of rows": r"\begin{bmatrix}" + r"1\\" * 30_000 + r"\end{bmatrix}",
        "assignments": ",".join(f"x_{{{n}}}={n}" for n in range(1, 7000)),
        "alternatives": r" \text{ or } ".join(f"x={n}" for n in range(1, 5000)),
        "distinct boxes": "".join(rf"\boxed{{{n}}} " for n in range(1, 7000)),
        "letters of choices": ",".join("ABCDE" * 9000),
    }


def strange_characters() -> dict[str, str]:
    noise = Random(5)
    return {
        "NULs": filled("\x00"),
        "NUL in a number": "7\x007",
        "lone surrogates": filled("\ud800"),
        "surrogate in a box": "\\boxed{7\udfff}",
        "control characters": "".join(map(chr, range(32))) * 3000,
        "right-to-left marks": filled("\u202e7"),
        "combining accents": "7" + "\u0301" * 90_000,
        "zero-width joiners": filled("\u200d"),
        "full-width digits": filled("\uff19"),
        "superscripts": filled("\u2079"),
        "vulgar fractions": filled("\u00bd"),
        "roots": filled("\u221a"),
        "circled digits": filled("\u2466"),
        "Arabic digits": filled("\u0667"),
        "mathematical digits": filled("\U0001d7df"),
        "Chinese numerals": filled("\u4e07\u4ebf"),
        "emoji": filled("\U0001f600"),
        "byte order marks": filled("\ufeff"),
        "random unicode": "".join(chr(noise.randrange(1, 0xD7FF)) for _ in range(LIMIT)),
        "random ASCII": "".join(chr(noise.randrange(32, 127)) for _ in range(LIMIT)),
        "random TeX": "".join(
            noise.choice(
                [r"\frac", "{", "}", "1", "x", "^", "_", r"\sqrt", "(", ")", r"\left", ",", "+", r"\pm"]
            )
            for _ in range(25_000)
        ),
        "import": "__import__('os').system('false')",
        "attribute walk": "().__class__.__bases__[0].__subclasses__()",
        "lambda": "lambda x: exec('1')",
        "format string": "%n%s{0.__class__}" * 100,
    }


def hostile_texts() -> dict[str, str]:
    families = (
        deep_nesting,
        unbalanced,
        long_runs,
        long_runs_in_their_place,
        huge_numbers,
        algebra,
        long_collections,
        strange_characters,
    )
    texts: dict[str, str] = {}
    for family in families:
        made = family()
        assert not texts.keys() & made.keys()
        texts |= {name: text[:LIMIT] for name, text in made.items()}
    return texts
