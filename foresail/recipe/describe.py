"""A preflight as plain lines for the terminal: batches, memory, files, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from foresail.recipe.batches import Batch
from foresail.recipe.curriculum import stage_lengths
from foresail.recipe.memory import dtype_of, kv_pages
from foresail.recipe.preflight import Preflight
from foresail.recipe.projections import count_adapters, projections_of
from foresail.recipe.stages import Rl
from foresail.recipe.units import gigabytes, grouped


def describe(found: Preflight) -> str:
    """The whole report; `refused:` lines come last, where the eye is."""
    blocks = [batch_lines(found), memory_lines(found), file_lines(found), verdict_lines(found)]
    return "\n\n".join("\n".join(block) for block in blocks)


def batch_lines(found: Preflight) -> Iterator[str]:
    batches, samples = found.batches, "samples" if isinstance(found.recipe, Rl) else "conversations"
    yield f"{'Batches':<22}{'prompts':>10}{samples:>15}{'tokens up to':>18}{'updates':>10}"
    for row in (batches.run, batches.step, batches.update, batches.micro_batch):
        yield batch_line(row)
    yield f"  an update takes up to {grouped(batches.micro_batches_per_update)} micro-batches"
    most = batches.most_prompts_per_step
    if most is not None and most > (batches.step.prompts or 0):
        yield f"  dynamic sampling may try up to {grouped(most)} prompts a step"
    if isinstance(found.recipe, Rl):
        yield from curriculum_lines(found.recipe)
    if found.num_records:
        drawn = batches.run.prompts or batches.run.samples
        yield f"  {drawn / found.num_records:.2f} passes over {grouped(found.num_records)} records"


def curriculum_lines(recipe: Rl) -> Iterator[str]:
    """curriculum stage 2: 30 steps of 64 prompts, up to 512 tokens, temperature 1, levels 2 (60 %), 3 (40 %)"""
    lengths = stage_lengths(recipe.curriculum, recipe.steps)
    for number, (phase, steps) in enumerate(zip(recipe.phases, lengths, strict=False), start=1):
        yield (
            f"  curriculum stage {number}: {steps} steps of {grouped(phase.prompts_per_step)} prompts, up to "
            f"{grouped(phase.sampling.max_new_tokens)} tokens, temperature {phase.sampling.temperature:g}, "
            f"{mix_in_words(phase.mix)}"
        )


def mix_in_words(mix: Sequence[float] | None) -> str:
    """mix_in_words((0, 3, 2, 0, 0)) -> "levels 2 (60 %), 3 (40 %)"."""
    if mix is None:
        return "problems of any level"
    shares = {level: weight / sum(mix) for level, weight in enumerate(mix, start=1) if weight}
    return "levels " + ", ".join(f"{level} ({100 * share:.0f} %)" for level, share in shares.items())


def batch_line(row: Batch) -> str:
    # A micro-batch is filled with tokens, so its samples are those that fit even at full length.
    samples = grouped(row.samples) if row.updates is not None else f"at least {grouped(row.samples)}"
    columns = f"{grouped(row.prompts):>10}{samples:>15}{grouped(row.tokens):>18}{grouped(row.updates):>10}"
    return f"  {row.name:<20}{columns}"


def memory_lines(found: Preflight) -> Iterator[str]:
    if found.shape is None or found.memory is None:
        yield "Memory: unknown, for the model cannot be read"
        return
    dtype = dtype_of(found.recipe, found.device)
    million = found.shape.num_parameters / 1e6
    yield f"Memory on {found.device}: {million:,.1f} M parameters in {dtype}"
    if (lora := found.recipe.lora) is not None:
        pairs = count_adapters(found.shape, lora.rank, lora.targets) / 1e6
        targets = ", ".join(projections_of(lora.targets))
        yield f"  {pairs:,.1f} M more learn, in pairs of rank {lora.rank} beside {targets}"
    for part in fields(found.memory):
        if (size := getattr(found.memory, part.name)) and part.name != "shared":
            yield f"  {part.name.replace('_', ' '):<20}{gigabytes(size):>12}{note(part.name, found)}"
    if found.memory.shared:
        yield f"  {'held in turn':<20}{'-' + gigabytes(found.memory.shared):>12}   by the cache and by updates"
    yield f"  {'in all, at most':<20}{gigabytes(found.memory.total):>12}"


def note(part: str, found: Preflight) -> str:
    recipe = found.recipe
    if part in ("activations", "logits"):
        return f"   one micro-batch of {grouped(found.batches.micro_batch.tokens)} tokens"
    if part == "kv_cache" and isinstance(recipe, Rl):
        pages = kv_pages(recipe.engine_room, recipe.max_length)
        return f"   {grouped(pages)} pages of {recipe.engine.page_size} tokens"
    return ""


def file_lines(found: Preflight) -> Iterator[str]:
    recipe, every = found.recipe, found.recipe.checkpoints.every
    yield f"Written to {found.folder}/ ({gigabytes(found.disk_free)} free)"
    yield "  recipe.toml         every value used"
    yield "  metrics.jsonl       a record every step; tensorboard/ the same"
    yield "  timeline.jsonl      what ran when"
    if isinstance(recipe, Rl):
        yield "  rollouts/           every sample of every step, compressed"
    each = gigabytes(found.memory.checkpoint) if found.memory is not None else "unknown size"
    often = "every step" if every == 1 else f"every {every} steps"
    yield f"  checkpoints/step_N  {each} {often}, the newest {recipe.checkpoints.keep} kept"


def verdict_lines(found: Preflight) -> Iterator[str]:
    for warning in found.warnings:
        yield f"warning: {warning}"
    for refusal in found.refusals:
        yield f"refused: {refusal}"
    if not found.refusals:
        yield "ready to run"
