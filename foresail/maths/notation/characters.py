r"""One alphabet for what people type: full-width, superscript and symbol characters become ASCII and LaTeX.

`plain("−４２² ≤ ½")` -> `-42^{2} \le  \frac{1}{2}`. Also mends text that lost backslashes on its way:
a tab followed by `ext{` was `\text{` before some program read it as an escape.
"""

from __future__ import annotations

import re
import unicodedata

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ", "0123456789+-()ni", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙₓ", "0123456789+-()nx", strict=True))
_FRACTIONS = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta",
    "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi",
    "ρ": "rho", "σ": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
    "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma",
    "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "µ": "mu", "ϕ": "phi", "ϵ": "epsilon", "∆": "Delta",
}  # fmt: skip
_COMMANDS = {
    "×": "times", "·": "cdot", "⋅": "cdot", "∙": "cdot", "•": "cdot", "÷": "div", "√": "sqrt", "∞": "infty",
    "≤": "le", "≥": "ge", "⩽": "le", "⩾": "ge", "≦": "le", "≧": "ge", "≠": "ne", "≈": "approx", "≡": "equiv",
    "±": "pm", "∓": "mp", "∪": "cup", "∩": "cap", "∖": "setminus", "∅": "emptyset", "∈": "in", "∉": "notin",
    "°": "degree", "⌊": "lfloor", "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil", "⟨": "langle", "⟩": "rangle",
    "∠": "angle", "…": "ldots", "⋯": "ldots", "∑": "sum", "∏": "prod", "∫": "int", "ℓ": "ell", "∣": "mid",
    "∧": "land", "∨": "lor", "△": "triangle", "⇒": "Rightarrow", "→": "to", "∘": "circ", "º": "degree",
    "˚": "degree",
}  # fmt: skip

_TABLE = str.maketrans(
    {chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}  # full-width forms of ASCII
    | {char: rf"\{name} " for char, name in (_COMMANDS | _GREEK).items()}
    | {char: rf"\mathbb{{{letter}}}" for char, letter in zip("ℝℤℚℕℂ", "RZQNC", strict=True)}
    | {char: rf"\frac{{{top}}}{{{bottom}}}" for char, (top, bottom) in _FRACTIONS.items()}
    | dict.fromkeys("−‐‑‒–—﹣", "-")
    | dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u2061\u2062\u2063\u2064", "")
    | {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0x1D400, 0x1D800)}  # 𝑥, 𝟓
    | {"∛": r"\sqrt[3]", "∜": r"\sqrt[4]", "∶": ":", "。": ".",
       "、": ",", "【": "[", "】": "]", "〈": "<", "〉": ">", "｡": ".", "′": "'", "″": '"', "’": "'", "‘": "'",
       "“": '"', "”": '"', "∗": "*", "⁄": "/", "∕": "/", "﹪": "%", "¥": "¥", "﹥": ">", "﹤": "<"}
)  # fmt: skip
_SCRIPTS = re.compile(
    "([" + re.escape("".join(_SUPERSCRIPTS)) + "]+)|([" + re.escape("".join(_SUBSCRIPTS)) + "]+)"
)
# The letter after the backslash was eaten by an escape: \f(rac), \t(ext…), \b(egin…), \r(ight…), \a(lpha…).
_EATEN = re.compile(
    r"\\?(?:\f(?=rac|box|loor)|\t(?=ext|frac|imes|heta|an\b|o\b)|\x08(?=egin|oxed|inom|eta|ar|igl|igr|mod)"
    r"|\r(?=ight|angle|floor|ceil|ho)|\x07(?=lpha|pprox|ngle|rc))"
)
_LETTERS = {"\f": "f", "\t": "t", "\x08": "b", "\r": "r", "\x07": "a"}
_DIGIT = re.compile(r"[^\W\D0-9]")  # in other scripts


def plain(text: str) -> str:
    """The text in ASCII and LaTeX as far as it can be; other letters stay what they are."""
    if text.isascii() and text.isprintable():
        return text
    text = _EATEN.sub(lambda eaten: "\\" + _LETTERS[eaten[0][-1]], text)
    text = _SCRIPTS.sub(_unscript, text)
    text = text.translate(_TABLE)
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0], "")), text)


def _unscript(run: re.Match[str]) -> str:
    if run[1]:
        return "^{" + "".join(_SUPERSCRIPTS[char] for char in run[1]) + "}"
    return "_{" + "".join(_SUBSCRIPTS[char] for char in run[2]) + "}"
