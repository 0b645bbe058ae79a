r"""What AsciiMath calls its symbols: names -> the character, or LaTeX where no character says it.

NAMES["alpha"] = "α"    NAMES["!in"] = "∉"    BRACKETS["(:"] = ("⟨", opening)
"""

from __future__ import annotations

PAIRS = r"""
alpha α beta β chi χ delta δ Delta Δ epsi ε epsilon ε varepsilon ɛ eta η gamma γ Gamma Γ iota ι kappa κ lambda λ
lamda λ Lambda Λ Lamda Λ mu μ nu ν omega ω Omega Ω phi ϕ varphi φ Phi Φ pi π Pi Π psi ψ Psi Ψ rho ρ sigma σ Sigma Σ
tau τ theta θ vartheta ϑ Theta Θ upsilon υ xi ξ Xi Ξ zeta ζ

* ⋅ ** ∗ *** ⋆ // / \\ ∖ setminus ∖ xx × |>< ⋉ ><| ⋊ |><| ⋈ -: ÷ divide ÷ @ ∘ o+ ⊕ ox ⊗ o. ⊙ sum ∑ prod ∏ ^^ ∧
^^^ ⋀ vv ∨ vvv ⋁ nn ∩ nnn ⋂ uu ∪ uuu ⋃ cdot ⋅ ast ∗ star ⋆ backslash ∖ times × ltimes ⋉ rtimes ⋊ bowtie ⋈ div ÷
circ ∘ oplus ⊕ otimes ⊗ odot ⊙ wedge ∧ bigwedge ⋀ vee ∨ bigvee ⋁ cap ∩ bigcap ⋂ cup ∪ bigcup ⋃

!= ≠ ne ≠ := := lt < <= ≤ le ≤ lt= ≤ leq ≤ gt > mlt ≪ ll ≪ >= ≥ ge ≥ gt= ≥ geq ≥ mgt ≫ gg ≫ -< ≺ -lt ≺ >- ≻
-<= ⪯ >-= ⪰ prec ≺ succ ≻ preceq ⪯ succeq ⪰ in ∈ !in ∉ notin ∉ sub ⊂ subset ⊂ sup ⊃ supset ⊃ sube ⊆ subseteq ⊆
supe ⊇ supseteq ⊇ !sub ⊄ !sube ⊈ !sup ⊅ !supe ⊉ -= ≡ equiv ≡ ~= ≅ cong ≅ ~~ ≈ approx ≈ ~ ∼ sim ∼ prop ∝ propto ∝

=> ⇒ implies ⇒ <=> ⇔ iff ⇔ AA ∀ forall ∀ EE ∃ exists ∃ _|_ ⊥ bot ⊥ TT ⊤ top ⊤ |-- ⊢ vdash ⊢ |== ⊨ models ⊨ not ¬
neg ¬

int ∫ oint ∮ del ∂ partial ∂ grad ∇ nabla ∇ +- ± pm ± -+ ∓ mp ∓ O/ ∅ emptyset ∅ oo ∞ infty ∞ aleph ℵ ... … ldots …
cdots ⋯ vdots ⋮ ddots ⋱ :. ∴ therefore ∴ :' ∵ because ∵ /_ ∠ angle ∠ /_\ △ triangle △ ' ′ prime ′ diamond ⋄ square □
frown ⌢ CC ℂ NN ℕ QQ ℚ RR ℝ ZZ ℤ

uarr ↑ uparrow ↑ darr ↓ downarrow ↓ rarr → rightarrow → -> → to → >-> ↣ rightarrowtail ↣ ->> ↠ twoheadrightarrow ↠
>->> ⤖ |-> ↦ mapsto ↦ larr ← leftarrow ← harr ↔ leftrightarrow ↔ rArr ⇒ Rightarrow ⇒ lArr ⇐ Leftarrow ⇐ hArr ⇔
Leftrightarrow ⇔ longrightarrow ⟶ hookrightarrow ↪
"""
SPACING = {"\\ ": "\\ ", "quad": "\\quad ", "qquad": "\\qquad ", "\\": "\\ ", "enspace": "\\enspace "}
WORDS = {"and": "\\text{ and }", "or": "\\text{ or }", "if": "\\text{if }"}
FUNCTIONS = frozenset(
    "sin cos tan sinh cosh tanh cot sec csc arcsin arccos arctan coth sech csch exp log ln det dim mod gcd lcm lub"
    " glb min max lim Lim arg ker deg inf Pr hom lg".split()
)
NAMES: dict[str, str] = dict(zip(PAIRS.split()[::2], PAIRS.split()[1::2], strict=True))
ACCENTS = {
    "hat": "^",
    "bar": "¯",
    "overline": "¯",
    "vec": "→",
    "tilde": "~",
    "dot": ".",
    "ddot": "¨",
    "overarc": "⏜",
    "overparen": "⏜",
    "ubrace": "⏟",
    "underbrace": "⏟",
    "obrace": "⏞",
    "overbrace": "⏞",
    "ul": "_",
    "underline": "_",
}
FONTS = {
    "bb": "mathbf",
    "mathbf": "mathbf",
    "bbb": "mathbb",
    "mathbb": "mathbb",
    "cc": "mathcal",
    "mathcal": "mathcal",
    "tt": "mathtt",
    "mathtt": "mathtt",
    "fr": "mathfrak",
    "mathfrak": "mathfrak",
    "sf": "mathsf",
    "mathsf": "mathsf",
    "rm": "mathrm",
    "mathrm": "mathrm",
    "bm": "boldsymbol",
}
AROUND = {"abs": ("|", "|"), "Abs": ("|", "|"), "norm": ("‖", "‖"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}
UNARY = frozenset(("sqrt", "cancel", *ACCENTS, *FONTS, *AROUND))
BINARY = frozenset(("frac", "root", "stackrel", "overset", "underset", "color", "class", "id"))
OPENING = {
    "(": "(",
    "[": "[",
    "{": "{",
    "(:": "⟨",
    "<<": "⟨",
    "langle": "⟨",
    "{:": "",
    "|__": "⌊",
    "lfloor": "⌊",
}
OPENING |= {"|~": "⌈", "lceil": "⌈", "left(": "(", "left[": "[", "left{": "{"}
CLOSING = {
    ")": ")",
    "]": "]",
    "}": "}",
    ":)": "⟩",
    ">>": "⟩",
    "rangle": "⟩",
    ":}": "",
    "__|": "⌋",
    "rfloor": "⌋",
}
CLOSING |= {"~|": "⌉", "rceil": "⌉", "right)": ")", "right]": "]", "right}": "}"}
DIFFERENTIALS = frozenset(("dx", "dy", "dz", "dt"))
WORDS_OF_SOURCE = frozenset(
    (*NAMES, *SPACING, *WORDS, *FUNCTIONS, *UNARY, *BINARY, *OPENING, *CLOSING, *DIFFERENTIALS)
)
