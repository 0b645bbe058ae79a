"""Runs a corpus step between two phases: collects from every piece, then decides once.

work/2-minhash/00000.features …        one file per piece, and a receipt with its checksum
work/2-minhash/decisions/00000 …       one file per piece; the folder is there when all are
work/2-minhash/decisions/seconds.json  CPU time of both
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from foresail.curate.named_step import NamedStep
from foresail.curate.run.executor import RunPieces
from foresail.curate.run.ledger import check_ledger, checksum, kept_documents
from foresail.curate.run.phase import LedgerPiece
from foresail.data.jobs.pool import Worker
from foresail.runlog.atomic import ASIDE, clean_leftovers, explained, replacing_directory

DECISIONS, FIGURES, SECONDS = "decisions", "figures.json", "seconds.json"


def run_corpus_step(
    step: NamedStep, ledgers: Mapping[str, LedgerPiece], folder: Path, run_pieces: RunPieces
) -> tuple[dict[str, Path], dict[str, Any], float]:
    """The file of decisions of each piece, the step's figures, and its CPU seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    clean_leftovers(folder)
    decisions = folder / DECISIONS
    files = {name: decisions / name for name in ledgers}
    if not decisions.exists():
        receipts = run_pieces(ledgers, partial(open_collector, step, folder), folder=folder)
        features = [checked(folder, name, receipts[name]) for name in ledgers]
        with explained(folder), replacing_directory(decisions) as hidden:
            scratch = hidden / "scratch"
            scratch.mkdir()
            begin = time.process_time()
            figures = step.settings.decide(features, [hidden / name for name in ledgers], scratch)
            seconds = time.process_time() - begin + sum(row["cpu_seconds"] for row in receipts.values())
            shutil.rmtree(scratch)
            check_decisions(step, hidden, list(ledgers))
            (hidden / FIGURES).write_text(json.dumps(figures, indent=1), encoding="utf-8")
            (hidden / SECONDS).write_text(json.dumps(seconds), encoding="utf-8")
    loaded: dict[str, Any] = json.loads((decisions / FIGURES).read_text(encoding="utf-8"))
    return files, loaded, json.loads((decisions / SECONDS).read_text(encoding="utf-8"))


def open_collector(step: NamedStep, folder: Path) -> Worker[LedgerPiece]:
    def collect(name: str, piece: LedgerPiece) -> dict[str, Any]:
        with explained(folder):
            begin = time.process_time()
            check_ledger(piece.ledger, piece.checksum)
            final = features_file(folder, name)
            hidden = final.with_name(f"{ASIDE}{final.name}")
            step.settings.collect(kept_documents(piece.ledger), hidden)
            hidden.replace(final)
            return {"checksum": checksum(final), "cpu_seconds": time.process_time() - begin}

    return collect


def features_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.features"


def checked(folder: Path, name: str, receipt: Mapping[str, Any]) -> Path:
    file = features_file(folder, name)
    check_ledger(file, receipt["checksum"])
    return file


def check_decisions(step: NamedStep, folder: Path, names: Sequence[str]) -> None:
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise ValueError(f"step {step.label} wrote no decisions for {len(missing)} of {len(names)} pieces")
