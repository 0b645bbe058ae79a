"""The preflight: memory, disk and batches of a recipe here, and why it cannot run, before a model loads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foresail.recipe.estimates.batches import Batches
from foresail.recipe.estimates.disk import CheckpointSize, peak_bytes
from foresail.recipe.estimates.machine import device_memory, free_disk, guess_device
from foresail.recipe.estimates.memory import FLOAT32, Device, Memory, gigabytes
from foresail.recipe.reading.run_folder import check_new_run
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.projections import beside_experts, narrowest
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import inputs, parts
from foresail.recipe.tables.cluster import Cluster, group_mistakes, head_mistakes

HOLDER: dict[Device, str] = {"cpu": "machine", "cuda": "GPU"}  # of memory
SLOWEST_PAIRS = 5e-6  # learning rate below which LoRA adapters hardly change


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """A recipe may run when `refusals` is empty. Without a readable model no size is known."""

    recipe: Stage
    device: Device
    shape: ModelShape | None
    batches: Batches
    memory: Memory | None
    checkpoint: CheckpointSize | None
    num_records: int | None
    disk_free: int
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


def preflight(recipe: Stage) -> Preflight:
    """All checks of a recipe, with all errors in one report."""
    device = guess_device(recipe.run.device)
    shape, unreadable = find_shape(recipe.model, recipe.max_length)
    memory = recipe.estimate_memory(shape, device) if shape is not None else None
    checkpoint = recipe.measure_checkpoint(shape, device) if shape is not None else None
    num_records = recipe.count_records()
    disk_free = free_disk(recipe.run.folder)
    refusals = [
        *unreadable,
        *input_refusals(recipe, shape),
        *rank_refusals(recipe.lora, shape),
        *(() if shape is None else recipe.shape_refusals(shape)),
        *context_refusals(recipe.cluster, shape),
        *recipe.refusals(num_records),
        *disk_refusals(recipe, checkpoint, disk_free),
        *memory_refusals(recipe, memory, device),
        *rotary_refusals(recipe, shape, memory, device),
    ]
    return Preflight(
        recipe=recipe,
        device=device,
        shape=shape,
        batches=recipe.count_batches(),
        memory=memory,
        checkpoint=checkpoint,
        num_records=num_records,
        disk_free=disk_free,
        refusals=tuple(refusals),
        warnings=(
            *setting_warnings(recipe),
            *disk_warnings(recipe, checkpoint, disk_free),
            *memory_warnings(recipe, memory, device),
        ),
    )


def find_shape(model: parts.Model, max_length: int) -> tuple[ModelShape | None, list[str]]:
    if model.path is None:
        return model.shape, []
    try:
        return read_shape(model.path, context=max_length, mtp_layers=model.mtp_layers), []
    except (OSError, ValueError) as error:
        return None, [f"model.path: {error}"]


def input_refusals(recipe: Stage, shape: ModelShape | None) -> Iterator[str]:
    model = recipe.model
    if model.path is not None and shape is not None:
        yield from inputs.check_weights(Path(model.path))
    tokenizer = model.tokenizer or (model.path if shape is not None else None)
    if tokenizer is not None:
        refusals = inputs.check_tokenizer(Path(tokenizer), shape, model.chat_template, chats=recipe.chats)
        yield from refusals
    for key, source in recipe.sources().items():
        yield from inputs.check_source(key, source)
    if recipe.run.wandb is not None:
        yield from inputs.check_wandb()
    if shape is not None and recipe.max_length > shape.max_context and not recipe.lengthens:
        yield recipe.context_refusal(shape.max_context)


def rank_refusals(lora: parts.Lora | None, shape: ModelShape | None) -> Iterator[str]:
    """An adapter wider than its matrix has more numbers than the matrix itself, and can do no more.

    Experts have no adapters: one each would be too many parameters, and other libraries do not load one for all.
    """
    if shape is None or lora is None:
        return
    if shape.experts is not None and (beside := beside_experts(lora.targets)):
        yield (
            f"lora.targets {', '.join(beside)} belong to experts here, which have no LoRA adapters; set "
            'lora.targets = ["attention"]'
        )
    name, side = narrowest(shape, lora.targets)
    if lora.rank > side:
        yield (
            f"lora.rank {lora.rank} exceeds the smaller side of {name}, which is {side}; "
            f"set lora.rank = {side} or less"
        )


def context_refusals(cluster: Cluster, shape: ModelShape | None) -> Iterator[str]:
    yield from group_mistakes(cluster)
    if shape is not None:
        yield from head_mistakes(cluster.context, shape.num_heads, shape.num_kv_heads)


def disk_refusals(recipe: Stage, checkpoint: CheckpointSize | None, disk_free: int) -> Iterator[str]:
    """Too little disk space for a single checkpoint."""
    if (cannot_begin := check_new_run(recipe)) is not None:
        yield cannot_begin
    if checkpoint is not None and checkpoint.whole > disk_free:
        yield (
            f"one checkpoint takes {gigabytes(checkpoint.whole)} and {recipe.run.folder} has "
            f"{gigabytes(disk_free)} free; free some, or set run.root to another disk"
        )


def memory_refusals(recipe: Stage, memory: Memory | None, device: Device) -> Iterator[str]:
    """Memory that is missing even with the shortest samples."""
    there = device_memory(device)
    if memory is not None and there is not None and memory.least > there:
        yield (
            f"weights, gradients, optimiser and KV cache take {gigabytes(memory.least)} and this {HOLDER[device]} "
            f"has {gigabytes(there)}; {smaller(recipe, memory, device, there)}"
        )


def rotary_refusals(
    recipe: Stage, shape: ModelShape | None, memory: Memory | None, device: Device
) -> Iterator[str]:
    """Rotary tables, with a row per position, take memory, too; checked only if the rest fits."""
    there = device_memory(device)
    if shape is None or memory is None or there is None or memory.least > there:
        return
    context = max(shape.max_context, recipe.max_length)
    if (tables := context * 2 * shape.head_dim * FLOAT32) > there:
        yield (
            f"positions of {context:,} tokens take {gigabytes(tables)} and this {HOLDER[device]} has "
            f"{gigabytes(there)}; set a shorter context"
        )


def smaller(recipe: Stage, memory: Memory, device: Device, there: int) -> str:
    """Which key to lower first where not even an empty micro-batch fits."""
    if memory.least - memory.kv_cache < there:
        return "set engine.kv_tokens or lower engine.max_running"
    if device == "cpu" or recipe.lora is not None:
        return "use a smaller model"
    eight = "" if recipe.optimizer.states == "8bit" else 'set optimizer.states = "8bit", or '
    return f"{eight}train LoRA adapters with [lora]"


def setting_warnings(recipe: Stage) -> Iterator[str]:
    """Settings that are probably mistakes."""
    yield from recipe.warnings()
    if recipe.optimizer.warmup >= recipe.num_updates:
        yield (
            f"optimizer.warmup {recipe.optimizer.warmup} lasts for all {recipe.num_updates} updates; "
            "the full rate is never reached"
        )
    if recipe.lora is not None and recipe.optimizer.lr < SLOWEST_PAIRS:
        yield (
            f"optimizer.lr {recipe.optimizer.lr:g} is a rate for full fine-tuning; LoRA adapters take "
            f"about ten times as much: try {10 * recipe.optimizer.lr:g}"
        )
    if recipe.run.device == "cuda" and guess_device("auto") == "cpu":
        yield "run.device is cuda, but no NVIDIA card is visible here"


def disk_warnings(recipe: Stage, checkpoint: CheckpointSize | None, disk_free: int) -> Iterator[str]:
    if checkpoint is None:
        return
    peak = peak_bytes(checkpoint, recipe.checkpoints, recipe.steps, keeps_best=recipe.keeps_best)
    if checkpoint.whole <= disk_free < peak:
        yield (
            f"checkpoints may take {gigabytes(peak)} and {recipe.run.folder} has {gigabytes(disk_free)} free; "
            "lower checkpoints.keep or checkpoints.resumable, or set run.root to another disk"
        )


def memory_warnings(recipe: Stage, memory: Memory | None, device: Device) -> Iterator[str]:
    there = device_memory(device)
    if memory is not None and there is not None and memory.least <= there < memory.total:
        tokens = recipe.tokens_at_once
        again = " or set recompute = true" if not recipe.recompute else ""
        yield (
            f"with a full micro-batch all may take {gigabytes(memory.total)} and this {HOLDER[device]} has "
            f"{gigabytes(there)}; set micro_batch_tokens below {tokens}{again}"
        )
