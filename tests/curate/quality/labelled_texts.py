"""Texts whose quality is known because it was taken away: words in another order, or drawn from a small list."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SUBJECTS = {
    "maths": "the sum of two even numbers is an even number and every prime above two is odd".split(),
    "cooking": "stir the rice with a little oil then add garlic and cook the soup over low heat".split(),
}


def labelled_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Fluency 0 to 3: so many thirds of the sentences have their words in order."""
    generator = random.Random(seed)
    rows = []
    for number in range(count):
        domain = generator.choice([*SUBJECTS])
        fluency = generator.randrange(4)
        sentences = []
        for place in range(3):
            words = list(SUBJECTS[domain])
            start = generator.randrange(len(words) - 8)
            words = words[start : start + 8]
            if place >= fluency:
                generator.shuffle(words)
            sentences.append(" ".join(words) + ".")
        generator.shuffle(sentences)
        labels = {"fluency": fluency, "worth": 1.5 + fluency + generator.random() / 10, "domain": domain}
        rows.append({"text": " ".join([*sentences, f"Page {number}."]), "labels": labels})
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
