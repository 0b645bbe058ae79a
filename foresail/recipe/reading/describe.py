"""The report of a preflight for the terminal: batches, memory, files, then warnings and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from foresail.recipe.estimates.batches import Batch, grouped
from foresail.recipe.estimates.memory import dtype_of, gigabytes
from foresail.recipe.reading.preflight import Preflight
from foresail.recipe.shape.projections import count_adapters, projections_of
from foresail.recipe.tables.parts import Checkpoints


def describe(preflight: Preflight, seen: Sequence[str] = ()) -> str:
    """The whole report, with what was `seen` in the data; `refused:` lines come last, where the eye is."""
    data = [["Read", *(f"  {line}" for line in seen)]] if seen else []
    placement = [*preflight.recipe.placement_lines()]
    places = [placement] if placement else []
    blocks = [
        batch_lines(preflight),
        memory_lines(preflight),
        *places,
        file_lines(preflight),
        *data,
        verdict_lines(preflight),
    ]
    return "\n\n".join("\n".join(block) for block in blocks)


def batch_lines(preflight: Preflight) -> Iterator[str]:
    batches = preflight.batches
    yield f"{'Batches':<22}{'prompts':>10}{preflight.recipe.unit:>15}{'tokens up to':>18}{'updates':>10}"
    for row in (batches.run, batches.step, batches.update, batches.micro_batch):
        yield batch_line(row)
    yield f"  an update takes up to {grouped(batches.micro_batches_per_update)} micro-batches"
    yield from (f"  {line}" for line in preflight.recipe.batch_notes())
    if preflight.num_records:
        drawn = batches.run.prompts or batches.run.samples
        yield f"  {drawn / preflight.num_records:.2f} passes over {grouped(preflight.num_records)} records"


def batch_line(row: Batch) -> str:
    # A micro-batch is filled with tokens, so its samples are those that fit even at full length.
    samples = grouped(row.samples) if row.updates is not None else f"at least {grouped(row.samples)}"
    columns = f"{grouped(row.prompts):>10}{samples:>15}{grouped(row.tokens):>18}{grouped(row.updates):>10}"
    return f"  {row.name:<20}{columns}"


def memory_lines(preflight: Preflight) -> Iterator[str]:
    if preflight.shape is None or preflight.memory is None:
        yield "Memory: unknown, because the model cannot be read"
        return
    dtype = dtype_of(preflight.recipe.model.dtype, preflight.device)
    million = preflight.shape.num_parameters / 1e6
    yield f"Memory on {preflight.device}: {million:,.1f} M parameters in {dtype}"
    if (lora := preflight.recipe.lora) is not None:
        pairs = count_adapters(preflight.shape, lora.rank, lora.targets) / 1e6
        targets = ", ".join(projections_of(lora.targets))
        yield f"  {pairs:,.1f} M more are trained, in adapters of rank {lora.rank} of {targets}"
    micro_batch = f"one micro-batch of {grouped(preflight.batches.micro_batch.tokens)} tokens"
    if preflight.recipe.cluster.context > 1:
        micro_batch = f"{grouped(preflight.recipe.tokens_at_once)} tokens of {micro_batch}"
    notes = {"activations": micro_batch, "logits": micro_batch, **preflight.recipe.memory_notes()}
    for part in fields(preflight.memory):
        if (size := getattr(preflight.memory, part.name)) and part.name != "shared":
            note = f"   {notes[part.name]}" if part.name in notes else ""
            yield f"  {part.name.replace('_', ' '):<20}{gigabytes(size):>12}{note}"
    if preflight.memory.shared:
        yield f"  {'held in turn':<20}{'-' + gigabytes(preflight.memory.shared):>12}   by the cache and by updates"
    yield f"  {'in all, at most':<20}{gigabytes(preflight.memory.total):>12}"


def file_lines(preflight: Preflight) -> Iterator[str]:
    recipe = preflight.recipe
    yield f"Written to {recipe.run.folder}/ ({gigabytes(preflight.disk_free)} free)"
    yield "  recipe.toml         every value used"
    yield "  metrics.jsonl       a record every step; tensorboard/ the same"
    yield "  timeline.jsonl      what ran when"
    yield from (f"  {name:<19} {content}" for name, content in recipe.files().items())
    each = gigabytes(preflight.checkpoint.whole) if preflight.checkpoint is not None else "unknown size"
    often = how_often(recipe.checkpoints)
    keep, resumable = recipe.checkpoints.keep, recipe.checkpoints.resumable
    held = f"the newest {keep} kept"
    if preflight.checkpoint is not None and keep > resumable:
        held += (
            f", but for {resumable} without the trainer's state: {gigabytes(preflight.checkpoint.weights)}"
        )
    yield f"  checkpoints/step_N  {each} {often}, {held}"


def how_often(settings: Checkpoints) -> str:
    """how_often(Checkpoints(every=20, minutes=10)) -> "every 20 steps or 10 minutes"."""
    steps = {None: "", 1: "step"}.get(settings.every, f"{settings.every} steps")
    minutes = f"{settings.minutes:g} minutes" if settings.minutes is not None and settings.every != 1 else ""
    return "every " + " or ".join(filter(None, (steps, minutes))) if steps or minutes else "at the end"


def verdict_lines(preflight: Preflight) -> Iterator[str]:
    for warning in preflight.warnings:
        yield f"warning: {warning}"
    for refusal in preflight.refusals:
        yield f"refused: {refusal}"
    if not preflight.refusals:
        yield "ready to run"
