"""Runs a curation recipe: phases of steps, corpus steps between them, sinks, report.

    curate(load_curation("recipes/curate/compass-v2.toml")) -> Summary(kept=790, …)

    out/plan.json            what it was begun with
    out/recipe.json          its recipe, for `foresail data why OUT ID`
    out/work/0/…             ledgers of phase 0: what became of each document (`run/ledger.py`)
    out/work/1-minhash/…     what a corpus step collected and decided
    out/documents/…          sinks
    out/mixtures/NAME.toml   shares of token folders, for pretraining
    out/summary.json, out/report.html

Stopped or killed, the same call goes on after the last document whose line is in a ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from foresail.curate.asking.cost import Cost
from foresail.curate.recipe import CurationCluster, CurationRecipe
from foresail.curate.report.page import write_report
from foresail.curate.run.corpus_step import run_corpus_step
from foresail.curate.run.executor import Executor, LocalExecutor, Note
from foresail.curate.run.folders import corpus_step_folder, phase_folder
from foresail.curate.run.ledger import DONE
from foresail.curate.run.phase import LedgerPiece, Phase, PhaseRescue, open_phase, split_phases
from foresail.curate.run.plan import begin_plan, pieces_of, plan_of
from foresail.curate.run.preflight import preflight
from foresail.curate.run.progress import READ
from foresail.curate.run.saved_recipe import save_recipe
from foresail.curate.run.statistics import Statistics, add_up
from foresail.curate.run.summary import Summary, count_sources
from foresail.curate.run.work import add_work
from foresail.curate.write.mixtures import write_mixtures
from foresail.curate.write.outputs import write_outputs
from foresail.runlog.atomic import clean_leftovers, explained, write_text
from foresail.runlog.lock import lock_folder

SUMMARY = "summary.json"
Tell = Callable[[str, Cost], None]


def curate(
    recipe: CurationRecipe, note: Note | None = None, tell: Tell = lambda label, cost: None
) -> Summary:
    """`tell` is called before a step asks a model, with what that may cost; it may raise, and nothing is asked."""
    preflight(recipe)
    out = recipe.out
    with explained(out), lock_folder(out), open_executor(recipe.curation.cluster, note) as executor:
        pieces = pieces_of(recipe)
        begin_plan(out, plan_of(recipe, pieces))
        save_recipe(recipe)
        clean_leftovers(out)
        inputs: dict[str, Any] = {f"{number:05}": piece for number, piece in enumerate(pieces)}
        summary = run_phases(recipe, inputs, executor, tell)
        write_text(out / SUMMARY, json.dumps(with_work(summary), indent=1, ensure_ascii=False) + "\n")
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


def run_phases(recipe: CurationRecipe, pieces: dict[str, Any], executor: Executor, tell: Tell) -> Summary:
    phases: list[Statistics] = []
    figures, work = dict[str, dict[str, Any]](), dict[str, tuple[float, int]]()
    costs: dict[str, Cost] = {}
    receipts: dict[str, dict[str, Any]] = {}
    read: dict[str, dict[str, Any]] = {}
    sources = {name: piece.source.short_name for name, piece in pieces.items()}
    folder = recipe.out
    for number, (decided, steps) in enumerate(split_phases(recipe.steps)):
        if decided is not None:
            step_folder = corpus_step_folder(recipe, number, decided)
            ledgers = ledger_pieces(folder, receipts)
            decisions, figures[decided.label], seconds = run_corpus_step(
                decided, ledgers, step_folder, executor.named(f"{decided.label}, all documents")
            )
            work[decided.label] = (seconds, 0)  # what comes to it is counted where its decisions are applied
            pieces = {
                name: LedgerPiece(piece.ledger, piece.checksum, decisions[name])
                for name, piece in ledgers.items()
            }
        elif number:  # a step that asks
            pieces = {**ledger_pieces(folder, receipts)}
            (asking, *_), came = steps, phases[-1].after
            if hasattr(asking.settings, "cost"):
                costs[asking.label] = asking.settings.cost(came.documents, came.bytes)
                tell(asking.label, costs[asking.label])
        folder = phase_folder(recipe, number)
        receipts = run_phase(recipe, folder, steps, decided, pieces, executor)
        read = read or receipts
        phases.append(add_up(receipts.values()))
        add_work(work, receipts.values())
    outputs = write_outputs(
        recipe, {folder / f"{name}{DONE}": receipt for name, receipt in receipts.items()}, executor
    )
    return Summary(
        steps=[READ, *(step.label for step in recipe.steps)],
        phases=phases,
        decided=figures,
        outputs=outputs,
        mixtures=write_mixtures(recipe, outputs),
        sources=count_sources(sources, read, receipts),
        work=work,
        costs=costs,
    )


def run_phase(
    recipe: CurationRecipe, folder: Path, steps: Any, decided: Any, pieces: dict[str, Any], executor: Executor
) -> dict[str, dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    clean_leftovers(folder)
    limits = recipe.curation
    phase = Phase(
        folder=folder,
        steps=steps,
        decided=decided,
        worker_memory_gib=limits.worker_memory_gib,
        seed=limits.seed,
    )
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


def with_work(summary: Summary) -> dict[str, Any]:
    work = {
        label: {"cpu_seconds": round(seconds, 3), "bytes": size}
        for label, (seconds, size) in summary.work.items()
    }
    return {**summary.as_json(), "work": work}
