"""Texts that mix scripts, marks, cases and lengths: drawn from a seed."""

from __future__ import annotations

import random

FIXED = (
    "",
    " ",
    "a",
    "!!! ???",
    "One, two three four five six!",
    "ไทย ภาษาไทยไม่มีเว้นวรรค abc กขค",
    "中文文本没有空格吗？有的 ok",
    "x" * 300 + " " + "y" * 500 + " z w v u",
    "İstanbul Ⱥb é é",
    "\u0301\u0301 start",
    " ".join(f"word{n}" for n in range(3000)),
    "\ud800 lone \udfff",
    "\x00 NUL \x00",
)
PARTS = [*"ab Zé,.ไก่ทย中文 Ⱥ😀", "\u0301", "\u1100", "\u3099", "\U0001e900", "\U00020000"]


def hostile_texts(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    lengths = (1, 1, 1, 2, 20, 60, 130)
    return [
        *FIXED,
        *(
            "".join(dice.choice(PARTS) * dice.choice(lengths) for _ in range(dice.randrange(60)))
            for _ in range(count)
        ),
    ]
