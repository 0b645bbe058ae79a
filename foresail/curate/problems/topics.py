"""The topic of a problem: what a column says, in one spelling, or what its words say.

name_topic("Counting & Probability") -> "counting_and_probability"
topic_of_words("Find the area of triangle ABC.", is_maths=True) -> "geometry"
"""

from __future__ import annotations

import re
from typing import Any

OTHER = "other"
LONGEST = 4000  # characters that are looked at

# Words of a topic, and how much each says for it.
MATHS: dict[str, dict[str, float]] = {
    "geometry": {
        r"triangles?|quadrilateral|pentagon|hexagon|polygons?|trapezoid|trapezium|parallelogram|"
        r"rhombus|incircle|circumcircle|circumradius|"
        r"inradius|perpendicular|bisector|altitude|median of|tangent to|inscribed|circumscribed|"
        r"chord|diameter|radius|circles?|sphere|"
        r"cylinder|cone|pyramid|prism|tetrahedron|cube|cubes|octahedron|perimeter|area of|volume of|"
        r"\\angle|\\triangle|angle": 1.0,
        r"squares? [A-Z]{4}|\$[A-Z]{3,4}\$|AB|BC|CD": 0.6,
    },
    "number_theory": {
        r"divisible|divisors?|divides|remainder|prime|primes|modulo|\\pmod|\\bmod|\bmod\b|gcd|lcm|"
        r"greatest common|least common|"
        r"units digit|base[- ]\w+|relatively prime|coprime|congruent to|multiples? of|"
        r"perfect squares?|palindromes?|factors? of|"
        r"decimal representation|terminating|repeating decimal|residue|digits?": 1.0,
        r"positive integers?|integers?": 0.3,
    },
    "counting_and_probability": {
        r"probability|how many (?:different |distinct |possible )?ways|permutations?|combinations?|"
        r"random(?:ly)?|dice|die\b|coins?|cards?|"
        r"marbles?|expected (?:value|number)|arrange(?:d|ments?)?|committee|select(?:ed|ion)?|"
        r"choose|chosen|\\binom|binom|seated|"
        r"flips?|flipped|rolled|handshakes?|subsets?|drawn at": 1.0,
    },
    "calculus": {
        r"\\int|\\lim|integral|derivative|differentia\w+|limit|converges?|diverges?|series|"
        r"\\frac\{d|dx|\\partial|gradient|"
        r"continuous|antiderivative|Taylor|Laplace": 1.0,
    },
    "precalculus": {
        r"\\sin|\\cos|\\tan|\\sec|\\csc|\\cot|\\theta|\\mathbf|pmatrix|vectors?|polar|"
        r"spherical coordinates|projection|arcsin|arccos|"
        r"arctan|rotation|dot product|cross product|matrix|matrices|trigonometr\w+": 1.0,
    },
    "algebra": {
        r"solve|equation|polynomials?|roots?|quadratic|function|f\(x\)|inequality|simplify|factor|"
        r"expand|expression|coefficient|sum of|"
        r"log|\\log|sequence|arithmetic|geometric (?:sequence|series|progression)|slope|intercept|"
        r"parabola|graph of|value of|x\^2|"
        r"percent|average|mean|ratio|interest|miles|hours|cost|per": 0.6,
    },
    "advanced": {
        r"groups?|rings?|ideals?|fields?|homomorphism|isomorph\w+|topolog\w+|manifold|measure|"
        r"metric space|Banach|Hilbert|"
        r"compact|eigenvalues?|vector space|kernel|module|homology|cohomology|sigma-algebra|"
        r"Lebesgue|abelian|Galois": 1.0,
    },
}
CODE: dict[str, dict[str, float]] = {
    "strings": {
        r"strings?|substrings?|characters?|letters?|palindrom\w+|words?|prefix|suffix|vowels?|"
        r"anagrams?|regex": 1.0
    },
    "arrays": {r"arrays?|lists?|subarrays?|elements?|nums|tuples?|matrix|grid|sublists?|intervals?": 0.8},
    "trees_and_graphs": {
        r"trees?|graphs?|nodes?|edges?|roots?|leaf|binary tree|vertices|path|cycle|connected|linked list": 1.0
    },
    "numbers": {
        r"numbers?|integers?|digits?|prime|sum|divisors?|factorial|fibonacci|power|area|volume|"
        r"binary|modulo|gcd|bit": 0.7
    },
    "dictionaries": {r"dictionar\w+|key[- ]value|hash|map|sets?": 0.9},
    "simulation": {
        r"robot|game|moves?|simulate|process|queue|stack|design|implement the class|operations": 0.8
    },
}


def compiled(topics: dict[str, dict[str, float]]) -> dict[str, list[tuple[re.Pattern[str], float]]]:
    return {
        topic: [
            (
                re.compile(
                    rf"(?<![A-Za-z])(?:{words})(?![a-z])", re.IGNORECASE if topic != "geometry" else 0
                ),
                weight,
            )
            for words, weight in rows.items()
        ]
        for topic, rows in topics.items()
    }


PATTERNS = {True: compiled(MATHS), False: compiled(CODE)}


def name_topic(value: Any) -> str:
    """One spelling; of a list its first; empty for what is no topic."""
    if isinstance(value, list | tuple):
        value = value[0] if value else ""
    if not isinstance(value, str) or not 2 <= len(value) <= 60:
        return ""
    return re.sub(r"[^a-z0-9]+", "_", value.lower().replace("&", "and")).strip("_")


def topic_of_words(text: str, *, is_maths: bool) -> str:
    """The topic whose words weigh most; each word counts once."""
    text = text[:LONGEST]
    best, highest = ("algebra" if is_maths else OTHER), 0.0
    for topic, patterns in PATTERNS[is_maths].items():
        weight = sum(
            value * len({match.lower() for match in pattern.findall(text)}) for pattern, value in patterns
        )
        if weight > highest:
            best, highest = topic, weight
    return best
