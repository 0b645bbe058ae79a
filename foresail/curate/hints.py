"""What a curation recipe probably means where it has a key or a step that is not there.

unknown_keys("step#1 (length): ", {"min_char": 9}, ["min_chars"])
-> ["step#1 (length): min_char: unknown key; did you mean min_chars?"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

KEYS = {  # of other tools, and tables whose entries have a name of one
    "sources": "[[source]]",
    "input": "[[source]]",
    "inputs": "[[source]]",
    "steps": "[[step]]",
    "pipeline": "[[step]]",
    "filters": "[[step]]",
    "sinks": "[[sink]]",
    "output": "out",
    "output_folder": "out",
    "output_dir": "out",
    "workers": "cluster.workers",
    "tasks": "cluster.workers",
}
STEPS = {  # of datatrove, Dolma and NeMo Curator, by words in their names
    "trafilatura": "extract",
    "resiliparse": "extract",
    "justext": "extract",
    "html": "extract",
    "minhash": "minhash",
    "dedup": "minhash",
    "duplicate": "minhash",
    "gopher": "heuristics",
    "c4": "heuristics",
    "fineweb": "heuristics",
    "filter": "heuristics",
    "lang": "language",
    "lid": "language",
    "fasttext": "language",
    "pii": "pii",
    "classif": "quality",
    "badword": "blocked_words",
    "word": "blocked_words",
    "url": "blocked_urls",
}
MOST_LISTED = 12


def take_unknown(place: str, table: dict[str, Any], known: Collection[str]) -> Iterator[str]:
    """Remove unknown keys from the table; a mistake for each."""
    for key in [key for key in table if re.split(r"[.#]", key)[0] not in known]:
        del table[key]
        yield f"{place}{key}: unknown key; {key_hint(key, known)}"


def key_hint(key: str, known: Collection[str]) -> str:
    if key in KEYS and (KEYS[key].strip("[]").partition(".")[0] in known):
        return f"did you mean {KEYS[key]}?"
    near = get_close_matches(key.lower().replace("-", "_"), known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    if not known:
        return "it takes none"
    if len(known) > MOST_LISTED:
        return "docs/curate-keys.md lists all"
    return f"there {'are' if len(known) > 1 else 'is'} {', '.join(sorted(known))}"


def step_hint(name: str, known: Collection[str]) -> str:
    """What to write for a step that is not there."""
    if name.endswith(".py"):
        return f"name its function, {name}:FUNCTION"
    plain = name.lower().replace("-", "_")
    near = get_close_matches(plain, known, n=1)
    meant = near or [step for word, step in STEPS.items() if word in plain and step in known]
    if meant:
        return f"did you mean {meant[0]}?"
    return f"there are {', '.join(sorted(known))}; your own is file.py:function"
