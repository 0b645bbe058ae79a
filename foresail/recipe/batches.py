"""Batch arithmetic: what the numbers of a recipe come to, in prompts and samples and tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foresail.recipe.curriculum import stage_lengths
from foresail.recipe.stages import Recipe, Rl


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One row: so many samples of at most so many tokens. SFT has conversations for samples, no prompts."""

    name: str
    prompts: int | None
    samples: int
    tokens: int
    updates: int | None


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Tokens are upper bounds: every sample at full length."""

    run: Batch
    step: Batch
    update: Batch
    micro_batch: Batch
    micro_batches_per_update: int
    most_prompts_per_step: int | None


def count_batches(recipe: Recipe) -> Batches:
    """64 prompts x 8 samples in 2 updates: 512 samples a step, 256 an update, or 512 if each is a whole pass."""
    if isinstance(recipe, Rl) and recipe.curriculum:
        return count_curriculum(recipe)
    if isinstance(recipe, Rl):
        prompts, samples, updates = recipe.prompts_per_step, recipe.samples_per_step, recipe.updates_per_step
        parts = recipe.parts_per_pass
        rounds = recipe.dynamic_sampling.max_rounds if recipe.dynamic_sampling.enabled else 1
    else:
        prompts, samples, updates, parts, rounds = None, recipe.batch_size, 1, 1, 1
    longest = recipe.max_length

    def row(name: str, times: int, share: int, updates: int) -> Batch:
        """`times` steps, or one part of `share` of a step."""
        count = samples * times // share
        return Batch(
            name=name,
            prompts=None if prompts is None else prompts * times // share,
            samples=count,
            tokens=count * longest,
            updates=updates,
        )

    # So many samples fit a micro-batch even at full length; shorter ones are packed, and more fit.
    fitting = min(recipe.micro_batch_tokens // longest, samples // parts)
    return Batches(
        run=row(f"run of {recipe.steps} steps", recipe.steps, 1, updates * recipe.steps),
        step=row("step", 1, 1, updates),
        update=row("update", 1, parts, 1),
        micro_batch=Batch(
            name="micro-batch",
            prompts=None,
            samples=fitting,
            tokens=min(recipe.micro_batch_tokens, samples // parts * longest),
            updates=None,
        ),
        micro_batches_per_update=-(-(samples // parts) // fitting),
        most_prompts_per_step=None if prompts is None else prompts * rounds,
    )


def count_curriculum(recipe: Rl) -> Batches:
    """The run over all its stages; the rest is that of the stage with the largest steps."""
    lengths = stage_lengths(recipe.curriculum, recipe.steps)
    stages = [
        count_batches(phase.model_copy(update={"steps": length}))
        for phase, length in zip(recipe.phases, lengths, strict=True)
    ]
    run = Batch(
        name=f"run of {recipe.steps} steps",
        prompts=sum(stage.run.prompts or 0 for stage in stages),
        samples=sum(stage.run.samples for stage in stages),
        tokens=sum(stage.run.tokens for stage in stages),
        updates=sum(stage.run.updates or 0 for stage in stages),
    )
    return replace(max(stages, key=lambda stage: stage.step.tokens), run=run)
