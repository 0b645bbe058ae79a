"""The tokens of a text, by the kernel: hashes, weights and places, a stretch of a long text at a time.

for tokens in TokenReader(weights, Masks()).read("2 ducks, 16 eggs"): tokens.excerpt(1, 2) -> "ducks"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from foresail.curate.decontaminate.escapes import unescaped
from foresail.curate.decontaminate.folding import LONGEST, SEVERAL, Array, code_points, composed, fold_tables
from foresail.curate.decontaminate.hashing import mixed, slot_of
from foresail.curate.decontaminate.token_kernel import hash_letters, read_tokens, weigh_tokens

STRETCH, OVERLAP = (
    1 << 20,
    1 << 13,
)  # code points; an n-gram of more than OVERLAP may be missed between stretches
# Greek letters are what LaTeX commands mean; functions are themselves; all other commands are left out
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "vartheta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "varphi": "φ",
    "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip
FUNCTIONS = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf gcd lcm deg det"
    " dim ker mod"
).split()
PRONOUNS = (
    "he she they his her him hers their theirs them himself herself themselves themself ele ela dele dela eles elas"
).split()


@dataclass(frozen=True)
class Tokens:
    """`places`: first code point of each token, and the one behind it."""

    text: str
    hashes: Array
    traits: Array
    weights: Array
    places: Array

    def excerpt(self, start: int, end: int) -> str:
        """Of tokens start up to end, as they stand in the text."""
        return self.text[self.places[start, 0] : self.places[end - 1, 1]]


@dataclass(frozen=True)
class Masks:
    """Whether names and pronouns are one token each, and numbers too."""

    names: bool = False
    numbers: bool = False


@cache
def vocabulary() -> tuple[Array, Array, Array]:
    """Commands that mean something, what they mean, and pronouns."""
    meanings = {token_hash(name): token_hash(letter) for name, letter in GREEK.items()}
    meanings |= {token_hash(name): token_hash(name) for name in FUNCTIONS}
    commands, values = np.zeros(256, np.uint64), np.zeros(256, np.uint64)
    for command, meaning in meanings.items():
        slot = slot_of(np.uint64(command), commands)
        commands[slot], values[slot] = command, meaning
    pronouns = np.zeros(128, np.uint64)
    for word in PRONOUNS:
        pronouns[slot_of(np.uint64(token_hash(word)), pronouns)] = token_hash(word)
    return commands, values, pronouns


def token_hash(word: str) -> int:
    _, letters, _ = fold_tables()
    return int(mixed(np.uint64(hash_letters(letters[code_points(word)]))))


class TokenReader:
    """Its arrays are used again for every text: what `read` yields is good until it is asked for the next."""

    def __init__(self, weights: Array, masks: Masks) -> None:
        self.weights, self.masks = weights, masks
        self.make_room(STRETCH + 1)

    def make_room(self, size: int) -> None:
        self.hashes, self.traits = np.empty(size, np.uint64), np.empty(size, np.uint8)
        self.token_weights, self.places = np.empty(size, np.int32), np.empty((size, 2), np.int32)

    def read(self, text: str) -> Iterator[Tokens]:
        """Tokens of one stretch after the other; each begins a little before the end of the one before it."""
        text = composed(unescaped(text))
        for begin in range(0, max(1, len(text) - OVERLAP), STRETCH - OVERLAP):
            yield self.tokens_of(text[begin : begin + STRETCH])

    def tokens_of(self, text: str) -> Tokens:
        codes = code_points(f"{text}\n")
        kinds, letters, several = fold_tables()
        size = len(codes) + (
            0 if text.isascii() else LONGEST * int(np.count_nonzero(kinds[codes] == SEVERAL))
        )
        if size > len(self.hashes):
            self.make_room(size)
        count = read_tokens(codes, kinds, letters, several, self.hashes, self.traits, self.places)
        count = weigh_tokens(
            count,
            self.hashes,
            self.traits,
            self.places,
            self.weights,
            self.masks.names,
            self.masks.numbers,
            *vocabulary(),
            self.token_weights,
        )
        return Tokens(
            text, self.hashes[:count], self.traits[:count], self.token_weights[:count], self.places[:count]
        )
