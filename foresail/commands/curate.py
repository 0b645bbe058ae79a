"""`foresail data curate` and `foresail data why`: documents from sources to sinks, and what became of one."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foresail.commands.interruption import explaining_interrupt
from foresail.commands.options import Overrides, RecipeFile

if TYPE_CHECKING:
    from foresail.curate.asking.cost import Cost
    from foresail.curate.recipe import CurationRecipe
    from foresail.curate.run.summary import Summary
    from foresail.curate.run.tracker import Standing

SECONDS_BETWEEN_LINES = 60.0
First = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, help="a try: the first so many documents of every source, into OUT-first-N"
    ),
]


def curate(
    recipe: RecipeFile,
    overrides: Overrides = None,
    against: Annotated[
        Path | None, typer.Option(help="another recipe: which documents does this one gain and lose?")
    ] = None,
    limit: First = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="stop where a step would ask a model, and say what that may cost")
    ] = False,
) -> None:
    """Sources, steps, sinks: read, extract, clean, choose; stopped or killed, it goes on where it was."""
    from foresail.curate.recipe import load_curation

    loaded = load_curation(recipe, overrides or []).limited(limit)
    other = load_curation(against).limited(limit) if against is not None else None
    if other is not None and other.out.resolve() == loaded.out.resolve():
        raise ValueError(
            f"{recipe} and {against} have the same out, {loaded.out}; give one of them another folder"
        )
    with explaining_interrupt("the same command goes on after the last document"):
        try:
            summary = run(loaded, stops=cost)
        except CostTold:
            print("nothing was asked; the same command without --cost goes on from here")
            return
        print(describe_summary(summary, loaded.out))
        if other is None:
            return
        from foresail.curate.run.against import compare

        run(other)
        print(compare(loaded, other).describe())


def why(
    target: Annotated[
        Path, typer.Argument(help="a curation's recipe or its folder; a run, a training recipe, a data file")
    ],
    name: Annotated[
        str, typer.Argument(help="id or address of a document; id of a row; PROBLEM.SAMPLE of a run")
    ],
    overrides: Overrides = None,
    step: Annotated[int | None, typer.Option(help="of a run; default: the last that has the sample")] = None,
    limit: First = None,
) -> None:
    """Where a document, a row or a rollout comes from, and every curation step's verdict on it."""
    from foresail.curate.lineage.trace import trace
    from foresail.curate.run.why import layout

    sections = trace(target, name, step=step, overrides=overrides or [], limit=limit)
    for section in sections:
        print(section.title)
        if section.lines:
            print(indent(layout([f"{label}: {said}" for label, said in section.lines]), "  "))


class CostTold(Exception):
    """A step would ask a model now."""


def run(recipe: CurationRecipe, stops: bool = False) -> Summary:
    """With a bar on a terminal, else with a line for every phase and now and then. It stops before a step asks a
    model if it is told to."""
    from rich.console import Console
    from rich.progress import Progress

    from foresail.curate.asking.cost import describe_cost
    from foresail.curate.curation import curate as run_curation

    def tell(label: str, cost: Cost) -> None:
        console.print(f"{label}: {describe_cost(cost)}", markup=False, highlight=False, soft_wrap=True)
        if stops:
            raise CostTold

    console = Console(stderr=True)
    if not console.is_terminal:
        return run_curation(recipe, PlainLines(), tell)
    with Progress(transient=True, console=console) as progress:
        bar = progress.add_task("reading")

        def note(standing: Standing) -> None:
            words = f"{standing.label}: {standing.describe()}"
            progress.update(bar, description=words, completed=standing.pieces_done, total=standing.pieces)

        return run_curation(recipe, note, tell)


class PlainLines:
    """Progress for a log file: one line when a phase begins and ends, and one a minute."""

    def __init__(self) -> None:
        self.printed, self.next = ("", 0), 0.0

    def __call__(self, standing: Standing) -> None:
        news = (standing.label, standing.pieces_done)
        ends = standing.pieces_done == standing.pieces
        begins = standing.label != self.printed[0]
        is_due = time.monotonic() >= self.next
        if (news == self.printed and (ends or not is_due)) or not (begins or ends or is_due):
            return
        self.printed, self.next = news, time.monotonic() + SECONDS_BETWEEN_LINES
        print(f"{standing.label}: {standing.describe()}", file=sys.stderr, flush=True)


def describe_summary(summary: Summary, out: Path) -> str:
    """Counts by reason, then where the output lies."""
    lines = [f"{summary.inputs:,} documents read, {summary.kept:,} kept"]
    for step, reasons in summary.dropped().items():
        each = ", ".join(
            f"{reason} {count:,}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1])
        )
        lines.append(f"  {step:<28} −{sum(reasons.values()):,}: {each}")
    lines += [f"{out}/{name}: {describe_output(output)}" for name, output in summary.outputs.items()]
    lines += [f"{out}/{file}: {describe_mixture(mixture)}" for file, mixture in summary.mixtures.items()]
    return "\n".join([*lines, f"report: {out}/report.html"])


def describe_output(output: dict[str, dict[str, int]]) -> str:
    """describe_output({"documents": {"": 790}}) -> "790 documents"."""
    documents = output["documents"]
    words = f"{sum(documents.values()):,} documents"
    if "tokens" in output:
        words += f", {sum(output['tokens'].values()):,} tokens"
    return words if [*documents] in ([""], []) else f"{words} in {len(documents)} folders"


def describe_mixture(mixture: dict[str, Any]) -> str:
    """{"shares": {"maths": 1.0}, "missing": ["code"]} -> "maths 100.0%; no documents of code"."""
    words = ", ".join(f"{name} {share:.1%}" for name, share in mixture["shares"].items())
    missing = mixture["missing"]
    return words + (f"; no documents of {', '.join(missing)}" if missing else "")
