"""A recipe over two small files, with steps of a user's: one that drops, one that sees all, one that doubles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foresail.curate.recipe import CurationRecipe, build_curation

STEPS = '''
import hashlib, json, os, signal, time
from dataclasses import replace
from foresail.curate.document import Drop

def short(document, least=8):
    return document if len(document.text) >= least else Drop("short", f"{len(document.text)} characters")

def halves(document):
    middle = len(document.text) // 2
    parts = document.text[:middle], document.text[middle:]
    return [replace(document, id=f"{document.id}#{n}", text=part) for n, part in enumerate(parts, 1)]

def deadly(document, word="KILL"):
    if word in document.text:
        os.kill(os.getpid(), signal.SIGKILL)
    return document

def endless(document):
    while "LOOP" in document.text:
        pass
    return document

def broken(document):
    return document.no_such_attribute

def slow(document):
    time.sleep(0.002)
    return document

def nothing(document):
    return None

def noted(document, file=""):
    with open(file, "a") as notes:
        notes.write(document.id + "\\n")
    return document

class Exact:
    """Drops repeated texts."""
    def collect(self, documents, features):
        rows = [[document.id, hashlib.md5(document.text.encode()).hexdigest()] for document in documents]
        features.write_text(json.dumps(rows))

    def decide(self, features, decisions, scratch):
        first, removed = {}, 0
        for file, decided in zip(features, decisions):
            names = [first.setdefault(digest, name) for name, digest in json.loads(file.read_text())]
            removed += sum(name != own for name, (own, _) in zip(names, json.loads(file.read_text())))
            decided.write_text(json.dumps(names))
        return {"removed": removed}

    def open(self, decisions):
        names = json.loads(decisions.read_text())
        def apply(n, document):
            return document if names[n] == document.id else Drop("repeated", f"repeats {names[n]}")
        return apply
'''


def write_inputs(folder: Path, rows: int = 40) -> None:
    """Two files; every fifth text is short, every seventh repeats the first."""
    (folder / "steps.py").write_text(STEPS)
    (folder / "in").mkdir()
    for name in ("a", "b"):
        lines = []
        for number in range(rows):
            text = f"document {number} of {name}, a text of some length"
            if number % 5 == 3:
                text = "short"
            if number % 7 == 2:
                text = "the text that is there several times"
            lines.append(json.dumps({"id": f"{name}{number}", "text": text, "page": number}))
        (folder / "in" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def small_recipe(folder: Path, *steps: dict[str, Any], **keys: Any) -> CurationRecipe:
    if not (folder / "in").exists():
        write_inputs(folder)
    own = steps or (step(folder, "short"), step(folder, "Exact"), step(folder, "halves"))
    table = {
        "out": str(folder / "out"),
        "source": [{"path": str(folder / "in")}],
        "step": [dict(entry) for entry in own],
        "cluster": {"workers": 2},
        **keys,
    }
    return build_curation(table)


def step(folder: Path, name: str, **keys: Any) -> dict[str, Any]:
    return {"name": f"{folder / 'steps.py'}:{name}", **keys}


def output_files(folder: Path) -> dict[str, bytes]:
    """Outputs and ledgers; receipts hold CPU seconds, which differ."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".json", ".html") and path.name != ".lock"
    }
