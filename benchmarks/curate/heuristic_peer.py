"""datatrove's filters of FineWeb over documents in a file; started by `heuristic_rules.py` where datatrove is.

heuristic_peer.py documents.jsonl -> a line of JSON: verdicts by document, CPU seconds by part
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

CODES = {"en": "eng", "de": "deu", "fr": "fra", "es": "spa", "it": "ita", "pt": "por", "nl": "nld", "pl": "pol",
         "cs": "ces", "ro": "ron", "hu": "hun", "id": "ind", "ms": "zsm", "tl": "fil", "vi": "vie", "zh": "cmn",
         "th": "tha"}  # fmt: skip
SCRIPTS = {"zh": "Hani", "th": "Thai"}


def filters(language: str, stop_words: list[str]) -> list[Any]:
    kinds = import_module("datatrove.pipeline.filters")
    name = "eng_Latn" if language == "en" else f"{CODES[language]}_{SCRIPTS.get(language, 'Latn')}"
    return [
        kinds.GopherRepetitionFilter(language=name),
        kinds.GopherQualityFilter(language=name, stop_words=None if language == "en" else stop_words),
        kinds.C4QualityFilter(filter_no_terminal_punct=False, language=name),
        kinds.FineWebQualityFilter(language=name),
    ]


def main(path: str) -> None:
    Document = import_module("datatrove.data").Document
    chains: dict[str, list[Any]] = {}
    with open(path, encoding="utf-8") as lines:
        stop_words = json.loads(next(lines))
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if row["language"] not in chains:
            chain = filters(row["language"], stop_words[row["language"]])
            for step in chain:  # loads tokenizers
                step.filter(Document(text="A first text, to warm up. " * 30, id="a"))
            chains[row["language"]] = chain
    seconds: dict[str, float] = {}
    verdicts = []
    for row in rows:
        begun = time.process_time()
        verdicts.append(verdict(chains[row["language"]], Document(text=row["text"], id="a")))
        seconds[row["part"]] = seconds.get(row["part"], 0.0) + time.process_time() - begun
    print(json.dumps({"verdicts": verdicts, "seconds": seconds}))


def verdict(chain: list[Any], document: Any) -> str:
    """ "" or the reason."""
    for step in chain:
        try:
            outcome = step.filter(document)
        except (
            ValueError,
            ZeroDivisionError,
            IndexError,
        ) as error:
            return f"failed: {type(error).__name__}"
        if outcome is not True:
            return str(outcome[1]) if isinstance(outcome, tuple) else step.name
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
