r"""The names a mathematical text may use, and what each stands for."""

from __future__ import annotations

from foresail.maths.lexicon.table import words_for


def word_set(text: str) -> frozenset[str]:
    """word_set("sin cos") -> {"sin", "cos"}."""
    return frozenset(text.split())


_SAME_IN_TREE = word_set("""
    sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech csch arcsinh
    arccosh arctanh ln log exp sqrt abs floor ceil max min gcd lcm det tr arg
""")
# Spelling -> the head that the tree uses.
FUNCTIONS: dict[str, str] = {name: name for name in _SAME_IN_TREE} | {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "acot": "arccot", "arsinh": "arcsinh",
    "arcosh": "arccosh", "artanh": "arctanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "tg": "tan", "ctg": "cot", "cosec": "csc", "arctg": "arctan", "arcctg": "arccot", "lg": "lg", "lb": "lb",
    "ceiling": "ceil", "sign": "sgn", "sgn": "sgn", "cbrt": "cbrt", "Re": "re", "Im": "im", "trace": "tr",
    "GCD": "gcd", "LCM": "lcm", "cis": "cis", "Abs": "abs", "Max": "max", "Min": "min", "factorial": "!",
    "binomial": "binom",
}  # fmt: skip

CONSTANTS = {"pi": "pi", "infty": "infinity", "infinity": "infinity", "inf": "infinity", "oo": "infinity",
             "varnothing": "empty", "emptyset": "empty", "imaginary": "i", "imath": "i"}  # fmt: skip

GREEK = word_set("""
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho
    sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
    Omega ell hbar aleph partial nabla prime triangle angle square wp
""")

RELATIONS = {
    "=": "=", "<": "<", ">": ">", "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=",
    "geq": ">=", "geqslant": ">=", "geqq": ">=", "lt": "<", "gt": ">", "ne": "!=", "neq": "!=", "approx": "~",
    "simeq": "~", "thickapprox": "~", "sim": "~", "equiv": "=", "cong": "=", "in": "in", "notin": "notin",
    "colon": ":", "coloneqq": "=", "triangleq": "=", "Rightarrow": "=>", "implies": "=>", "to": "->",
    "rightarrow": "->", "mapsto": "->", "subset": "subset", "subseteq": "subset", "iff": "=>", "doteq": "~",
    "Leftrightarrow": "=>", "longrightarrow": "->",
}  # fmt: skip

# Commands that change how something looks and not what it says.
DECORATION = word_set("""
    left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle displaystyle textstyle
    scriptstyle limits nolimits nonumber notag hfill centering strut allowbreak noindent relax ensuremath
    boxed fbox hbox rm bf it mathstrut blacksquare checkmark
""")
TEXT = word_set("""
    text textbf textit textrm textnormal textsf texttt textup mathrm mathbf mathit mathsf mathtt mathcal
    mathnormal mbox hbox operatorname boldsymbol bm mathscr mathfrak emph underline
""")
ACCENTS = frozenset("overline bar vec hat tilde overrightarrow widehat dot ddot overset mathring".split())
OPAQUE = frozenset("sum prod int lim iint oint bigcup bigcap".split())  # compared, and not carried out
BARS = {"lvert": "rvert", "vert": "vert", "lVert": "rVert", "Vert": "Vert", "lfloor": "rfloor",
        "lceil": "rceil"}  # fmt: skip
STRUCTURES = word_set("""
    frac dfrac tfrac cfrac sfrac sqrt binom dbinom tbinom choose begin end times cdot div pm mp cup cap
    setminus backslash infty ldots dots cdots vdots mathbb langle rangle lfloor rfloor lceil rceil lvert rvert
    vert Vert lVert rVert mid circ degree sum prod int lim to bmod mod pmod star ast land lor wedge vee quad
    qquad hspace phantom vphantom hphantom stackrel lbrace rbrace lbrack rbrack bigcup bigcap iint iiint oint
    not perp parallel jmath intercal cdotp centerdot bullet oplus otimes top over slash cr newline color textcolor
""")
COMMANDS = (
    frozenset(FUNCTIONS) | frozenset(CONSTANTS) | GREEK | frozenset(RELATIONS) - {"=", "<", ">"}
    | DECORATION | TEXT | ACCENTS | STRUCTURES
)  # fmt: skip
_BY_LENGTH = sorted((name for name in COMMANDS if len(name) > 1), key=len, reverse=True)

# Words written without a backslash that mean a command all the same: `sqrt(2)`, `2 pi`, `frac{1}{2}`.
BARE_COMMANDS = (
    {name: name for name in FUNCTIONS if len(name) > 2 or name in ("ln", "lg", "tg")}
    | {"pi": "pi", "Pi": "pi", "infinity": "infty", "inf": "infty", "oo": "infty", "Infinity": "infty",
       "frac": "frac", "dfrac": "frac", "binom": "binom", "cdot": "cdot", "times": "times", "union": "cup",
       "cup": "cup", "emptyset": "emptyset", "leq": "le", "geq": "ge", "neq": "ne", "degree": "degree",
       "degrees": "degree", "deg": "degree", "percent": "%", "percentage": "%", "pct": "%",
       "mod": "bmod", "choose": "choose", "pm": "pm", "in": "in"}
    | {name: name for name in
       word_set("alpha beta gamma delta epsilon theta kappa lambda rho sigma tau phi psi omega")}
)  # fmt: skip

CONDITIONAL = frozenset(words_for("condition"))  # words before a condition
SEPARATORS = frozenset(words_for("separator"))


def split_command(name: str) -> tuple[str, str]:
    r"""A command that ran into its argument: split_command("sinb") -> ("sin", "b"); unknown ones stay whole."""
    if name in COMMANDS:
        return name, ""
    for known in _BY_LENGTH:
        if name.startswith(known):
            return known, name[len(known) :]
    return name, ""
