"""Keys and codes of the long-context tasks.

A key is an adjective and a noun with a hyphen between them, "amber-river"; no key is part of another.
"""

from __future__ import annotations

from random import Random

ADJECTIVES = """
    able amber ample azure basic blunt brave brief brisk broad calm cheap chief civil clean clear close cold
    cosy crisp cruel cubic curly damp dark deep dense dim dizzy dry dull eager early exact faint fair false
    fast fierce fine firm flat fond formal fresh frosty full gentle giant glad golden grand great green grey
    happy harsh hasty heavy hollow honest huge humble hungry icy idle jolly keen kind large late lazy light
    little lively local lonely loud loyal lucky mellow mild modern muddy narrow neat new noble noisy odd
    opal open pale plain polite proud quick
""".split()
NOUNS = """
    acorn anchor apple arrow badge barn basin beacon bell bench bird boat bottle bridge brook bucket button
    cabin camel candle canyon carpet castle cedar chain cherry circle cliff clock cloud comet copper coral
    crane cradle desert dolphin donkey door dragon drum eagle engine falcon feather fiddle flame forest
    fountain fox garden glacier glove goose granite guitar hammer harbour hawk hedge helmet heron hill
    island jacket jungle kettle kite ladder lagoon lantern lemon lily lion magnet maple marble meadow mirror
    mountain needle oak olive orchard otter paddle palace parrot pebble pepper pigeon pillow pine planet
    prairie pyramid quarry rabbit raven river
""".split()
MAX_KEYS = len(ADJECTIVES) * len(NOUNS)
CODE_DIGITS = 7


def draw_keys(rng: Random, count: int) -> list[str]:
    """draw_keys(rng, 2) -> ["amber-river", "late-heron"], all different."""
    return [
        f"{ADJECTIVES[number // len(NOUNS)]}-{NOUNS[number % len(NOUNS)]}"
        for number in rng.sample(range(MAX_KEYS), count)
    ]


def draw_codes(rng: Random, count: int, *, digits: int = CODE_DIGITS) -> list[str]:
    """draw_codes(rng, 2) -> ["4158302", "9071365"]: all different, none part of another."""
    return [str(number) for number in rng.sample(range(10 ** (digits - 1), 10**digits), count)]


def draw_letters(rng: Random, count: int, *, length: int, alphabet: str) -> list[str]:
    """draw_letters(rng, 2, length=5, alphabet="ABC…") -> ["QKTRE", "MZXAV"], all different."""
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(alphabet, k=length))] = None
    return list(words)
