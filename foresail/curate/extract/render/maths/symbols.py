r"""Characters of formulas as LaTeX commands, and the names that LaTeX sets upright.

symbol("α") -> "\\alpha "    symbol("−") -> "-"    symbol("𝐀") -> "\\mathbf{A}"    symbol("é") -> "é"

A command ends in a space, so that a letter may follow; `tidy` takes away the spaces that are not needed.
"""

from __future__ import annotations

import re
import unicodedata

PAIRS = """
α alpha β beta γ gamma δ delta ε varepsilon ϵ epsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa
ϰ varkappa λ lambda μ mu µ mu ν nu ξ xi π pi ϖ varpi ρ rho ϱ varrho σ sigma ς varsigma τ tau υ upsilon
φ varphi ϕ phi χ chi ψ psi ω omega Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi
Ω Omega ϝ digamma

± pm ∓ mp × times ÷ div ⋅ cdot · cdot ∗ ast ⋆ star ∘ circ ∙ bullet • bullet ⊕ oplus ⊖ ominus ⊗ otimes
⊘ oslash ⊙ odot ∖ setminus ≀ wr ⋄ diamond ⨿ amalg † dagger ‡ ddagger ⊞ boxplus ⊟ boxminus ⊠ boxtimes
⊡ boxdot ⊎ uplus ⊓ sqcap ⊔ sqcup ∩ cap ∪ cup ∧ wedge ∨ vee ⊻ veebar ⋊ rtimes ⋉ ltimes ⋈ bowtie ⊺ intercal
∔ dotplus ⌅ barwedge △ triangle ▽ triangledown ◃ triangleleft ▹ triangleright ⊲ triangleleft ⊳ triangleright
⊴ unlhd ⊵ unrhd

∑ sum ∏ prod ∐ coprod ∫ int ∬ iint ∭ iiint ⨌ iiiint ∮ oint ∯ oiint ⋂ bigcap ⋃ bigcup ⋀ bigwedge ⋁ bigvee
⨁ bigoplus ⨂ bigotimes ⨀ bigodot ⨄ biguplus ⨆ bigsqcup

≤ le ≥ ge ≦ leqq ≧ geqq ⩽ leqslant ⩾ geqslant ≪ ll ≫ gg ≠ ne ≡ equiv ≢ not\\equiv ≈ approx ≃ simeq ≅ cong
≊ approxeq ∼ sim ≁ nsim ∝ propto ≍ asymp ≐ doteq ≔ coloneqq ≕ eqqcolon ≜ triangleq ≝ overset{\\text{def}}{=}
≺ prec ≻ succ ⪯ preceq ⪰ succeq ≼ preccurlyeq ≽ succcurlyeq ⊂ subset ⊃ supset ⊆ subseteq ⊇ supseteq
⊊ subsetneq ⊋ supsetneq ⊄ not\\subset ⊅ not\\supset ⊈ nsubseteq ⊉ nsupseteq ⊏ sqsubset ⊐ sqsupset
⊑ sqsubseteq ⊒ sqsupseteq ∈ in ∋ ni ∉ notin ∊ in ∍ ni ⊢ vdash ⊣ dashv ⊨ models ⊩ Vdash ⊬ nvdash ⊭ nvDash
⊥ perp ∥ parallel ∦ nparallel ∣ mid ∤ nmid ≮ nless ≯ ngtr ≰ nleq ≱ ngeq ≲ lesssim ≳ gtrsim ≶ lessgtr
≷ gtrless ⋖ lessdot ⋗ gtrdot ≏ bumpeq ≎ Bumpeq ≙ overset{\\wedge}{=} ⌣ smile ⌢ frown ∽ backsim ⋍ backsimeq
≉ not\\approx ≇ ncong ≄ not\\simeq ⋘ lll ⋙ ggg ⪅ lessapprox ⪆ gtrapprox ∷ :: ⊧ models

← leftarrow → to ↑ uparrow ↓ downarrow ↔ leftrightarrow ↕ updownarrow ⇐ Leftarrow ⇒ Rightarrow ⇑ Uparrow
⇓ Downarrow ⇔ Leftrightarrow ⇕ Updownarrow ↦ mapsto ⟼ longmapsto ⟵ longleftarrow ⟶ longrightarrow
⟷ longleftrightarrow ⟸ Longleftarrow ⟹ Longrightarrow ⟺ Longleftrightarrow ↩ hookleftarrow ↪ hookrightarrow
↼ leftharpoonup ↽ leftharpoondown ⇀ rightharpoonup ⇁ rightharpoondown ⇌ rightleftharpoons
⇋ leftrightharpoons ↗ nearrow ↘ searrow ↙ swarrow ↖ nwarrow ↠ twoheadrightarrow ↞ twoheadleftarrow
↣ rightarrowtail ⇝ rightsquigarrow ↝ leadsto ⇄ rightleftarrows ⇆ leftrightarrows ⇉ rightrightarrows
⇇ leftleftarrows ↛ nrightarrow ↚ nleftarrow ⇏ nRightarrow ⇍ nLeftarrow ↺ circlearrowleft ↻ circlearrowright
↾ upharpoonright ⊸ multimap ⇛ Rrightarrow ⇚ Lleftarrow ↶ curvearrowleft ↷ curvearrowright

∀ forall ∃ exists ∄ nexists ¬ neg ⊤ top ∅ emptyset ⌀ varnothing ∞ infty ∂ partial ∇ nabla √ surd ∠ angle
∡ measuredangle ∢ sphericalangle ∴ therefore ∵ because … ldots ⋯ cdots ⋮ vdots ⋱ ddots ⋰ iddots ′ prime
‵ backprime ℏ hbar ℓ ell ℘ wp ℜ Re ℑ Im ℵ aleph ℶ beth ℷ gimel ð eth ∁ complement □ square ■ blacksquare
◊ lozenge ◻ square ◼ blacksquare ▲ blacktriangle ▼ blacktriangledown ★ bigstar ♠ spadesuit ♡ heartsuit
♢ diamondsuit ♣ clubsuit ♭ flat ♮ natural ♯ sharp ✓ checkmark ○ bigcirc ◯ bigcirc ° circ ∎ blacksquare
ⅆ mathrm{d} ⅇ mathrm{e} ⅈ mathrm{i} ⅉ mathrm{j} Å mathrm{\\AA} ℧ mho ı imath ȷ jmath § S ¶ P © copyright
£ pounds ¥ yen ≬ between ⋔ pitchfork

⟨ langle ⟩ rangle \u3008 langle \u3009 rangle \u2329 langle \u232a rangle ⌈ lceil ⌉ rceil ⌊ lfloor ⌋ rfloor
‖ | ⟦ llbracket ⟧ rrbracket ⟮ lgroup ⟯ rgroup ⎰ lmoustache ⎱ rmoustache ⌜ ulcorner ⌝ urcorner ⌞ llcorner
⌟ lrcorner
"""
# What has no letters of its own, or another text than a command's name.
OTHERS = {
    "−": "-",
    "–": "-",
    "‐": "-",
    "∕": "/",
    "⁄": "/",
    "﹣": "-",
    "＋": "+",
    "＝": "=",
    "″": "''",
    "‴": "'''",
    "⁗": "''''",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "∶": ":",
    "⩵": "==",
    "≟": "\\overset{?}{=}",
    "⁡": "",
    "⁢": "",
    "⁣": "",
    "⁤": "",
    "\u200b": "",
    "\u200c": "",
    "\u200d": "",
    "\u2060": "",
    "\ufeff": "",
    "\u00ad": "",
    "\ufe00": "",
    "\ufe0e": "",
    "\ufe0f": "",
    "\xa0": "\\ ",
    "\u2002": "\\enspace ",
    "\u2003": "\\quad ",
    "\u2004": "\\;",
    "\u2005": "\\:",
    "\u2006": "\\,",
    "\u2008": "\\,",
    "\u2009": "\\,",
    "\u200a": "\\,",
    "\u202f": "\\,",
    "\u205f": "\\:",
    "\\": "\\backslash ",
    "{": "\\{",
    "}": "\\}",
    "%": "\\%",
    "#": "\\#",
    "&": "\\&",
    "$": "\\$",
    "_": "\\_",
    "^": "\\hat{}",
    "~": "\\sim ",
    "¼": "\\frac{1}{4}",
    "½": "\\frac{1}{2}",
    "¾": "\\frac{3}{4}",
    "⅓": "\\frac{1}{3}",
    "⅔": "\\frac{2}{3}",
}
FUNCTIONS = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log"
    " max min Pr sec sin sinh sup tan tanh".split()
)
# Their limits stand below and above where the formula has room.
WITH_LIMITS = frozenset("lim liminf limsup max min sup inf det gcd Pr".split())
BIG = frozenset("∑∏∐⋂⋃⋀⋁⨁⨂⨀⨄⨆∫∬∭⨌∮∯")
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎", "0123456789+-=()ni0123456789+-=()")
SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ]+")
SUBSCRIPT = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎]+")
FONTS = (
    ("DOUBLE-STRUCK", "mathbb"),
    ("BLACK-LETTER", "mathfrak"),
    ("FRAKTUR", "mathfrak"),
    ("SCRIPT", "mathcal"),
    ("MONOSPACE", "mathtt"),
    ("SANS-SERIF", "mathsf"),
    ("BOLD ITALIC", "boldsymbol"),
    ("BOLD", "mathbf"),
)
SPACES = re.compile(r"\s+")
SPACE_AFTER_COMMAND = re.compile(r"(\\[A-Za-z]+) (?![A-Za-z])")


def command_of(name: str) -> str:
    command = name.replace("\\\\", "\\")
    if command == "::":
        return "::"
    return f"\\{command} " if command[-1].isalpha() else f"\\{command}"


SYMBOLS: dict[str, str] = {
    char: command_of(name) for char, name in zip(PAIRS.split()[::2], PAIRS.split()[1::2], strict=True)
} | OTHERS


def symbol(char: str) -> str:
    if (latex := SYMBOLS.get(char)) is not None:
        return latex
    if char.isascii():
        return char
    return styled(char) or char


def styled(char: str) -> str:
    """Letters that Unicode has in several fonts: 𝔸 -> \\mathbb{A}, 𝑥 -> x."""
    plain = unicodedata.normalize("NFKC", char)
    name = unicodedata.name(char, "")
    if len(plain) != 1 or plain == char or not ("MATHEMATICAL" in name or 0x2100 <= ord(char) < 0x2140):
        return ""
    letter = SYMBOLS.get(plain, plain).strip()
    for word, command in FONTS:
        if word in name:
            return f"\\{command}{{{letter}}}"
    return SYMBOLS.get(plain, plain)


def symbols(text: str) -> str:
    if text.isascii() and text.isalnum():
        return text
    if SUPERSCRIPT.search(text):
        text = SUPERSCRIPT.sub(lambda match: f"\0^{{{match[0].translate(RAISED)}}}\0", text)
    if SUBSCRIPT.search(text):
        text = SUBSCRIPT.sub(lambda match: f"\0_{{{match[0].translate(RAISED)}}}\0", text)
    if "\0" in text:
        parts = text.split("\0")
        return "".join(
            part if number % 2 else "".join(map(symbol, part)) for number, part in enumerate(parts)
        )
    return "".join(map(symbol, text))


TEXT = str.maketrans(
    {
        "\\": "\\textbackslash{}",
        "{": "\\{",
        "}": "\\}",
        "%": "\\%",
        "#": "\\#",
        "&": "\\&",
        "$": "\\$",
        "_": "\\_",
        "^": "\\^{}",
        "~": "\\~{}",
        "\xa0": " ",
    }
)


def text_command(text: str) -> str:
    r"""text_command("if x_1 ") -> \text{if x\_1 }"""
    return f"\\text{{{SPACES.sub(' ', text).translate(TEXT)}}}"


def tidy(latex: str) -> str:
    r"""tidy(r"\alpha +\beta x ") -> r"\alpha+\beta x" """
    return SPACE_AFTER_COMMAND.sub(r"\1", latex).strip()
