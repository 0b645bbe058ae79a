"""The preflight: what a recipe comes to on this machine, and why it cannot run, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from foresail.recipe import inputs
from foresail.recipe.batches import Batches, count_batches
from foresail.recipe.hf_config import read_shape
from foresail.recipe.levels import level_refusals
from foresail.recipe.machine import device_memory, free_disk, guess_device
from foresail.recipe.memory import Device, Memory, estimate, kv_pages, pages_per_sample
from foresail.recipe.projections import narrowest
from foresail.recipe.reward_function import check_function
from foresail.recipe.run_folder import check_new_run, run_folder
from foresail.recipe.shape import ModelShape
from foresail.recipe.stages import Recipe, Rl
from foresail.recipe.units import gigabytes

HOLDER: dict[Device, str] = {"cpu": "machine", "cuda": "GPU"}  # of memory
WIDEST_GSPO_CLIP = 0.01
SLOWEST_PAIRS = 5e-6
SLOWEST_HEAD = 1e-4


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """A recipe may run when `refusals` is empty. Without a readable model there is no shape and no memory."""

    recipe: Recipe
    device: Device
    folder: Path
    shape: ModelShape | None
    batches: Batches
    memory: Memory | None
    num_records: int | None
    disk_free: int
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


def preflight(recipe: Recipe) -> Preflight:
    """Look at everything, and report all that is wrong at once."""
    device = guess_device(recipe.run.device)
    shape, unreadable = find_shape(recipe)
    critic_shape, critic_refusals = find_critic_shape(recipe)
    memory = estimate(shape, recipe, device, critic_shape) if shape is not None else None
    num_records = count_usable(recipe)
    disk_free = free_disk(run_folder(recipe))
    refusals = [
        *unreadable,
        *critic_refusals,
        *input_refusals(recipe, shape),
        *rank_refusals(recipe, shape),
        *length_refusals(recipe, shape),
        *data_refusals(recipe, num_records),
        *room_refusals(recipe, memory, device, disk_free),
    ]
    return Preflight(
        recipe=recipe,
        device=device,
        folder=run_folder(recipe),
        shape=shape,
        batches=count_batches(recipe),
        memory=memory,
        num_records=num_records,
        disk_free=disk_free,
        refusals=tuple(refusals),
        warnings=tuple(find_warnings(recipe, memory, device, disk_free)),
    )


def find_shape(recipe: Recipe) -> tuple[ModelShape | None, list[str]]:
    if recipe.model.path is None:
        return recipe.model.shape, []
    try:
        return read_shape(recipe.model.path, context=recipe.max_length), []
    except (OSError, ValueError) as error:
        return None, [f"model.path: {error}"]


def find_critic_shape(recipe: Recipe) -> tuple[ModelShape | None, list[str]]:
    """Of a critic that does not start from the policy."""
    if not isinstance(recipe, Rl) or recipe.critic is None or recipe.critic.path is None:
        return None, []
    path = Path(recipe.critic.path)
    try:
        shape = read_shape(path, context=recipe.max_length)
    except (OSError, ValueError) as error:
        return None, [f"critic.path: {error}"]
    refusals = [f"critic.path: {refusal}" for refusal in inputs.check_weights(path)]
    if recipe.max_length > shape.max_context:
        refusals.append(
            f"critic.path: samples of up to {recipe.max_length} tokens exceed its context of {shape.max_context}; "
            "use a model with a longer one"
        )
    return shape, refusals


def count_usable(recipe: Recipe) -> int | None:
    """Records the run will draw from, where they can be counted at a glance."""
    count = inputs.count_records(source_of(recipe))
    limit = recipe.data.limit if isinstance(recipe, Rl) else None
    return count if count is None or limit is None else min(count, limit)


def source_of(recipe: Recipe) -> str:
    return recipe.data.source if isinstance(recipe, Rl) else recipe.data


def input_refusals(recipe: Recipe, shape: ModelShape | None) -> Iterator[str]:
    model = recipe.model
    if model.path is not None and shape is not None:
        yield from inputs.check_weights(Path(model.path))
    tokenizer = model.tokenizer or (model.path if shape is not None else None)
    if tokenizer is not None:
        yield from inputs.check_tokenizer(Path(tokenizer), shape)
    yield from inputs.check_source("data.source" if isinstance(recipe, Rl) else "data", source_of(recipe))
    if isinstance(recipe, Rl) and recipe.eval is not None:
        yield from inputs.check_source("eval.source", recipe.eval.source)
    if isinstance(recipe, Rl):
        for key, problems in (("data", recipe.data), ("eval", recipe.eval)):
            if problems is not None and problems.examples is not None:
                yield from inputs.check_source(f"{key}.examples", problems.examples)
    if isinstance(recipe, Rl):
        yield from level_refusals(recipe)
    if isinstance(recipe, Rl) and recipe.reward.own_function:
        yield from check_function("reward.grader", recipe.reward.grader)
    if recipe.run.wandb is not None and find_spec("wandb") is None:
        yield "run.wandb is set, but Weights & Biases is not installed; pip install 'foresail[wandb]'"


def rank_refusals(recipe: Recipe, shape: ModelShape | None) -> Iterator[str]:
    """A pair wider than its matrix has more numbers than the matrix itself, and can do no more."""
    if shape is None or recipe.lora is None:
        return
    name, side = narrowest(shape, recipe.lora.targets)
    if recipe.lora.rank > side:
        yield (
            f"lora.rank {recipe.lora.rank} exceeds the smaller side of {name}, which is {side}; "
            f"set lora.rank = {side} or less"
        )


def length_refusals(recipe: Recipe, shape: ModelShape | None) -> Iterator[str]:
    """Samples that fit neither the model's context nor the KV cache."""
    if shape is not None and recipe.max_length > shape.max_context:
        yield context_refusal(recipe, shape.max_context)
    if not isinstance(recipe, Rl):
        return
    page = recipe.engine.page_size
    pages = pages_per_sample(page, recipe.max_length)
    if kv_pages(recipe.engine_room, recipe.max_length) < pages:
        yield (
            f"engine.kv_tokens {recipe.engine.kv_tokens} cannot hold one sample of {recipe.max_length} "
            f"tokens ({pages} pages of {page}); set engine.kv_tokens = {pages * page} or more"
        )


def context_refusal(recipe: Recipe, context: int) -> str:
    if not isinstance(recipe, Rl):
        return (
            f"max_length {recipe.max_length} exceeds the model's context of {context} tokens; "
            f"set max_length = {context} or less"
        )
    left, longest = context - recipe.max_prompt_tokens, recipe.max_length - recipe.max_prompt_tokens
    key = (
        "sampling.max_new_tokens"
        if longest == recipe.sampling.max_new_tokens
        else "curriculum's max_new_tokens"
    )
    mend = f"{key} = {left}" if left > 0 else f"max_prompt_tokens below {context}"
    return (
        f"max_prompt_tokens {recipe.max_prompt_tokens} + {key} {longest} = {recipe.max_length} exceed the model's "
        f"context of {context} tokens; set {mend}"
    )


def data_refusals(recipe: Recipe, num_records: int | None) -> Iterator[str]:
    """Noise is keyed by problem: the same one twice in a step would be answered twice in the same words."""
    most = max(phase.prompts_per_step for phase in recipe.phases) if isinstance(recipe, Rl) else 0
    if num_records and num_records < most:
        yield (
            f"prompts_per_step {most} (prompts) exceeds the {num_records} problems of {source_of(recipe)}; "
            f"set prompts_per_step = {num_records} or less"
        )


def room_refusals(recipe: Recipe, memory: Memory | None, device: Device, disk_free: int) -> Iterator[str]:
    """What cannot be held or written, whatever the samples turn out to be."""
    if (cannot_begin := check_new_run(recipe)) is not None:
        yield cannot_begin
    if memory is None:
        return
    if memory.checkpoint > disk_free:
        yield (
            f"one checkpoint takes {gigabytes(memory.checkpoint)} and {run_folder(recipe)} has "
            f"{gigabytes(disk_free)} free; free some, or set run.root to another disk"
        )
    there = device_memory(device)
    if there is not None and memory.least > there:
        yield (
            f"weights, gradients, optimiser and KV cache take {gigabytes(memory.least)} and this {HOLDER[device]} "
            f"has {gigabytes(there)}; {smaller(recipe, memory, device, there)}"
        )


def smaller(recipe: Recipe, memory: Memory, device: Device, there: int) -> str:
    """What to change first where not even an empty micro-batch fits."""
    if memory.least - memory.kv_cache < there:
        return "set engine.kv_tokens or lower engine.max_running"
    if device == "cpu" or recipe.lora is not None:
        return "use a smaller model"
    eight = "" if recipe.optimizer.states == "8bit" else 'set optimizer.states = "8bit", or '
    return f"{eight}train low-rank pairs with [lora]"


def find_warnings(recipe: Recipe, memory: Memory | None, device: Device, disk_free: int) -> Iterator[str]:
    """What may go wrong, or is not what one would expect."""
    yield from loss_warnings(recipe)
    batches = count_batches(recipe)
    updates = batches.run.updates or 0
    if isinstance(recipe, Rl):
        updates -= recipe.critic_only_steps * recipe.updates_per_step
    if recipe.optimizer.warmup >= updates:
        yield (
            f"optimizer.warmup {recipe.optimizer.warmup} lasts for all {updates} updates; "
            "the full rate is never reached"
        )
    if recipe.lora is not None and recipe.optimizer.lr < SLOWEST_PAIRS:
        yield (
            f"optimizer.lr {recipe.optimizer.lr:g} is a rate for whole matrices; low-rank pairs take about ten "
            f"times as much: try {10 * recipe.optimizer.lr:g}"
        )
    if recipe.run.device == "cuda" and guess_device("auto") == "cpu":
        yield "run.device is cuda, but no NVIDIA card is visible here"
    if memory is None:
        return
    # the new one is written before the oldest goes
    writing = (recipe.checkpoints.keep + 1) * memory.checkpoint
    if memory.checkpoint <= disk_free < writing:
        yield (
            f"checkpoints may take {gigabytes(writing)} and {run_folder(recipe)} has "
            f"{gigabytes(disk_free)} free; lower checkpoints.keep, or set run.root to another disk"
        )
    there = device_memory(device)
    if there is not None and memory.least <= there < memory.total:
        again = " or set recompute = true" if not recipe.recompute else ""
        yield (
            f"with a full micro-batch all may take {gigabytes(memory.total)} and this {HOLDER[device]} has "
            f"{gigabytes(there)}; set micro_batch_tokens below {batches.micro_batch.tokens}{again}"
        )


def loss_warnings(recipe: Recipe) -> Iterator[str]:
    """Settings that run, but hardly mean what was meant."""
    if not isinstance(recipe, Rl):
        return
    loss, critic = recipe.loss, recipe.critic
    if critic is not None and critic.kind == "head" and critic.optimizer.lr < SLOWEST_HEAD:
        yield (
            f"critic.optimizer.lr {critic.optimizer.lr:g} suits a model; one layer hardly moves at it; try 1e-3"
        )
    if critic is not None and recipe.dynamic_sampling.enabled:
        yield (
            "with a critic every group teaches, and dynamic sampling hides from it the problems that are always or "
            "never solved; set dynamic_sampling.enabled = false"
        )
    if loss.kl == "k1" and loss.kl_weight > 0:
        yield (
            f'loss.kl_weight {loss.kl_weight:g} with loss.kl = "k1" pulls nowhere, for the mean gradient of k1 '
            'is zero; set loss.kl = "k3"'
        )
    widest = max(loss.clip_low, loss.clip_high)
    if loss.kind == "gspo" and widest > WIDEST_GSPO_CLIP:
        yield (
            f"GSPO clips the ratio of whole samples, which stays so close to 1 that a bound of {widest:g} hardly "
            "ever acts; the paper has loss.clip_low = 3e-4, loss.clip_high = 4e-4"
        )
