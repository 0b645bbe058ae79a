"""Runs a curation recipe: phases of steps, corpus steps between them, sinks, report.

    curate(load_curation("recipes/curate/compass-v2.toml")) -> Summary(kept=790, …)

    out/plan.json            what it was begun with
    out/work/0/…             ledgers of phase 0: what became of each document (`run/ledger.py`)
    out/work/1-minhash/…     what a corpus step collected and decided
    out/documents/…          sinks
    out/summary.json, out/report.html

Stopped or killed, the same call goes on after the last document whose line is in a ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from foresail.curate.read.source import list_pieces
from foresail.curate.recipe import CurationCluster, CurationRecipe
from foresail.curate.run.corpus_step import run_corpus_step
from foresail.curate.run.executor import Executor, LocalExecutor, Note
from foresail.curate.run.folders import corpus_step_folder, phase_folder
from foresail.curate.run.ledger import DONE
from foresail.curate.run.phase import LedgerPiece, Phase, PhaseRescue, open_phase, split_phases
from foresail.curate.run.plan import begin_plan, plan_of
from foresail.curate.run.statistics import Statistics, add_up
from foresail.curate.write.outputs import write_outputs
from foresail.runlog.atomic import clean_leftovers, explained, write_text
from foresail.runlog.lock import lock_folder

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Summary:
    """`phases`: statistics of each; `decided`: figures of corpus steps by label; `outputs`: by sink."""

    steps: list[str]
    phases: list[Statistics]
    decided: dict[str, dict[str, Any]]
    outputs: dict[str, Any]
    cpu_seconds: dict[str, float]

    @property
    def inputs(self) -> int:
        return self.phases[0].inputs

    @property
    def kept(self) -> int:
        return self.phases[-1].after.documents

    def dropped(self) -> dict[str, dict[str, int]]:
        """By step and reason, in the order of the steps."""
        merged = {step: dict(reasons) for phase in self.phases for step, reasons in phase.dropped.items()}
        return {step: merged[step] for step in (*self.steps, *merged) if step in merged}

    def as_json(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "input_bytes": self.phases[0].input_bytes,
            "kept": self.kept,
            "kept_bytes": self.phases[-1].after.bytes,
            "dropped": self.dropped(),
            "before": self.phases[0].before.as_json(),
            "after": self.phases[-1].after.as_json(),
            "decided": self.decided,
            "outputs": self.outputs,
        }


def curate(recipe: CurationRecipe, note: Note | None = None) -> Summary:
    out = recipe.out
    with explained(out), lock_folder(out), open_executor(recipe.curation.cluster, note) as executor:
        pieces = [piece for source in recipe.curation.source for piece in list_pieces(source)]
        begin_plan(out, plan_of(recipe, pieces))
        clean_leftovers(out)
        inputs: dict[str, Any] = {f"{number:05}": piece for number, piece in enumerate(pieces)}
        summary = run_phases(recipe, inputs, executor)
        write_text(out / SUMMARY, json.dumps(summary.as_json(), indent=1, ensure_ascii=False) + "\n")
        write_report(recipe, summary)
    return summary


@contextmanager
def open_executor(cluster: CurationCluster, note: Note | None) -> Iterator[Executor]:
    if cluster.kind == "local":
        yield LocalExecutor(cluster.workers, note)
        return
    from foresail.curate.run.ray_data import open_ray_executor

    with open_ray_executor(cluster, note) as executor:
        yield executor


def run_phases(recipe: CurationRecipe, pieces: dict[str, Any], executor: Executor) -> Summary:
    phases, figures, seconds = [], {}, dict[str, float]()
    receipts: dict[str, dict[str, Any]] = {}
    folder = recipe.out
    for number, (decided, steps) in enumerate(split_phases(recipe.steps)):
        if decided is not None:
            step_folder = corpus_step_folder(recipe, number, decided)
            ledgers = ledger_pieces(folder, receipts)
            decisions, figures[decided.label] = run_corpus_step(
                decided, ledgers, step_folder, executor.named(decided.label)
            )
            pieces = {
                name: LedgerPiece(piece.ledger, piece.checksum, decisions[name])
                for name, piece in ledgers.items()
            }
        folder = phase_folder(recipe, number)
        receipts = run_phase(recipe, folder, steps, decided, pieces, executor)
        phases.append(add_up(receipts.values()))
        for receipt in receipts.values():
            for label, spent in receipt["cpu_seconds"].items():
                seconds[label] = seconds.get(label, 0.0) + spent
    outputs = write_outputs(
        recipe, {folder / f"{name}{DONE}": receipt for name, receipt in receipts.items()}, executor
    )
    return Summary(["read", *(step.label for step in recipe.steps)], phases, figures, outputs, seconds)


def run_phase(
    recipe: CurationRecipe, folder: Path, steps: Any, decided: Any, pieces: dict[str, Any], executor: Executor
) -> dict[str, dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    clean_leftovers(folder)
    limits = recipe.curation
    phase = Phase(folder=folder, steps=steps, decided=decided, worker_memory_gib=limits.worker_memory_gib)
    label = steps[0].label if steps else (decided.label if decided is not None else "read")
    run_pieces: Callable[..., dict[str, dict[str, Any]]] = executor.named(
        label if len(steps) < 2 else f"{steps[0].label} to {steps[-1].label}"
    )
    return run_pieces(
        pieces,
        partial(open_phase, phase),
        folder=folder,
        rescue=PhaseRescue(folder, limits.max_cpu_seconds),
    )


def ledger_pieces(folder: Path, receipts: dict[str, dict[str, Any]]) -> dict[str, LedgerPiece]:
    return {
        name: LedgerPiece(folder / f"{name}{DONE}", receipt["checksum"], Path())
        for name, receipt in receipts.items()
    }


def write_report(recipe: CurationRecipe, summary: Summary) -> None:
    """Filled in by curate/report."""
