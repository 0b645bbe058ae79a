"""Tells every step's verdict on one document, by running it again.

    explain(recipe, "web/a.jsonl:17")
    -> ["read: web/a.jsonl:17, 4,017 bytes, text/html", "1 extract: none → 2,310 characters, title = 'Soup'",
        "2 minhash: dropped, …"]

Steps that need all documents are not run again; what they have decided is applied. Nor is a step that the document
has killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import orjson

from foresail.curate.asking.cache import AnswerCache, NotAsked
from foresail.curate.document import Document, Drop
from foresail.curate.named_step import NamedStep
from foresail.curate.read.source import read_documents
from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.chain import Chain, Result, settle
from foresail.curate.run.corpus_step import DECISIONS
from foresail.curate.run.folders import corpus_step_folder, ledgers, phase_folder, phase_folders
from foresail.curate.run.ledger import DONE, entries, kept_documents
from foresail.curate.run.phase import split_phases
from foresail.curate.run.plan import pieces_of
from foresail.curate.run.suspects import DEATHS
from foresail.data.zst import open_zst

SHOWN = 60  # characters of a value
LINE = 100  # characters
OTHERS = 10  # documents of the same address
Verdict = str


def explain(recipe: CurationRecipe, name: str) -> list[Verdict]:
    """`name` is an id or an address."""
    piece, number = locate(recipe, name)
    _, read = next(iter(read_documents(pieces_of(recipe)[int(piece)], number)))
    if isinstance(read, Drop):
        return [f"read: dropped, {describe_drop(read.reason, read.detail)}"]
    size = len(read.content) or len(read.text.encode("utf-8", "replace"))
    address = f", {read.url}" if read.url else ""
    verdicts = [f"read: {read.id}, {size:,} bytes, {read.media_type}{address}"]
    documents: Sequence[Document] = [read]
    deaths = find_deaths(recipe, piece)
    for phase, (decided, steps) in enumerate(split_phases(recipe.steps)):
        if decided is not None and documents:
            documents = [*apply_decisions(recipe, phase, decided, piece, documents, verdicts)]
        answers = AnswerCache(phase_folder(recipe, phase), writes=False)
        for step in steps:
            if step.asks:
                answers.open_piece(piece)
            documents = [*run_step(step, documents, verdicts, deaths, answers)]
    verdicts += [f"kept: {document.id}, {len(document.text):,} characters" for document in documents]
    if name == read.url and (others := with_address(recipe, name, read.id)):
        verdicts.append(f"same address: {', '.join(others)}")
    return verdicts


def with_address(recipe: CurationRecipe, address: str, known: str) -> list[str]:
    """Ids of the other documents that were read from it, the first of them."""
    searched = orjson.dumps(address)
    ids = []
    for file in ledgers(phase_folders(recipe)[0]):
        with open_zst(file) as lines:
            entries_with = (orjson.loads(line) for line in lines if searched in line)
            ids += [row["id"] for row in entries_with if address in names_of(row) and row["id"] != known]
        if len(ids) > OTHERS:
            return [*ids[:OTHERS], "…"]
    return ids


def layout(verdicts: Sequence[Verdict]) -> str:
    """Labels in one column, what is said of them in another, long lines broken at commas."""
    pairs = [verdict.split(": ", 1) for verdict in verdicts]
    width = max((len(label) for label, _ in pairs), default=0)
    gap = "\n" + " " * (width + 2)
    return "\n".join(
        f"{label:<{width}}  {gap.join(wrap(said, LINE, break_long_words=False))}" for label, said in pairs
    )


def locate(recipe: CurationRecipe, name: str) -> tuple[str, int]:
    """The piece and the number there of the document with this id or address."""
    folders = phase_folders(recipe)
    if not ledgers(folders[0]):
        raise ValueError(f"{recipe.out} holds no finished ledger; run foresail data curate first")
    searched = orjson.dumps(name)
    for folder in folders:
        for file in ledgers(folder):
            with open_zst(file) as lines:
                for line in lines:
                    if searched not in line:
                        continue
                    entry = orjson.loads(line)
                    if name not in names_of(entry):
                        continue
                    piece = file.name.removesuffix(DONE)
                    if folder == folders[0]:
                        return piece, entry["n"]
                    return locate_in(folders[0] / file.name, entry["id"]) or (piece, entry["n"])
    raise ValueError(
        f"no document of {recipe.out} has the id or address {name!r}; ids stand in the output and in the report"
    )


def locate_in(file: Path, name: str) -> tuple[str, int] | None:
    with open_zst(file) as lines:
        for line in lines:
            entry = orjson.loads(line)
            if name in names_of(entry):
                return file.name.removesuffix(DONE), entry["n"]
    return None


def names_of(entry: dict[str, Any]) -> Iterator[str]:
    """Ids and addresses of what was read and of what became of it."""
    yield entry["id"]
    for row in (*entry["kept"], *(drop["document"] for drop in entry["dropped"])):
        yield row["id"]
        yield row.get("url", "")


def find_deaths(recipe: CurationRecipe, piece: str) -> dict[tuple[str, str], str]:
    """What ended a process, by step and document."""
    deaths = {}
    for folder in phase_folders(recipe):
        if (file := folder / f"{piece}{DONE}").exists():
            for entry in entries(file):
                for drop in entry.result.dropped:
                    if drop.reason in DEATHS:
                        deaths[drop.step, drop.document.id] = describe_drop(drop.reason, drop.detail)
    return deaths


def run_step(
    step: NamedStep,
    documents: Sequence[Document],
    verdicts: list[Verdict],
    deaths: dict[tuple[str, str], str],
    answers: AnswerCache,
) -> Iterator[Document]:
    alive = []
    for document in documents:
        if death := deaths.get((step.label, document.id)):
            verdicts.append(f"{step.label}: dropped, {death}")
        else:
            alive.append(document)
    try:
        results = Chain([step], answers).run(alive)
    except NotAsked:
        verdicts.append(f"{step.label}: has not asked its model about this yet; run foresail data curate")
        return
    for document, result in zip(alive, results, strict=True):
        yield from note_result(step.label, document, result, verdicts)


def apply_decisions(
    recipe: CurationRecipe,
    phase: int,
    step: NamedStep,
    piece: str,
    documents: Sequence[Document],
    verdicts: list[Verdict],
) -> Iterator[Document]:
    decide = step.settings.open(corpus_step_folder(recipe, phase, step) / DECISIONS / piece)
    before = phase_folder(recipe, phase - 1) / f"{piece}{DONE}"
    places = {document.id: place for place, document in enumerate(kept_documents(before))}
    for document in documents:
        result = Result()
        result.kept += settle(decide(places[document.id], document), step.label, document, result)
        yield from note_result(step.label, document, result, verdicts)


def note_result(
    label: str, document: Document, result: Result, verdicts: list[Verdict]
) -> Iterator[Document]:
    for drop in result.dropped:
        verdicts.append(f"{label}: dropped, {describe_drop(drop.reason, drop.detail)}")
    for kept in result.kept:
        verdicts.append(f"{label}: {describe_change(document, kept)}")
        yield kept


def describe_drop(reason: str, detail: str) -> str:
    return f"{reason} ({detail})" if detail else reason


def first_change(before: str, after: str) -> int:
    """first_change("abc", "abd") -> 2."""
    pairs = zip(before, after, strict=False)
    return next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(before), len(after)))


def describe_change(before: Document, after: Document) -> str:
    """describe_change(…, …) -> "none → 2,310 characters, language = 'id'"."""
    changes = []
    if after.id != before.id:
        changes.append(f"as {after.id}")
    if after.text != before.text:
        where = (
            f", changed from character {first_change(before.text, after.text):,} on" if before.text else ""
        )
        came = f"{len(before.text):,}" if before.text else "none"
        changes.append(f"{came} → {len(after.text):,} characters{where}")
    for key, value in after.metadata.items():
        if key not in before.metadata or before.metadata[key] != value:
            # of a table, such as `made`, each value
            parts = {f"{key}.{name}": one for name, one in value.items()} if isinstance(value, dict) else {}
            changes += [f"{name} = {short(one)}" for name, one in (parts or {key: value}).items()]
    return ", ".join(changes) or "unchanged"


def short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"
