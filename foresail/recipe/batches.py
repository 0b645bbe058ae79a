"""Batch arithmetic: what the numbers of a recipe come to, in prompts and samples and tokens."""

from __future__ import annotations

from dataclasses import dataclass

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
    """64 prompts x 8 samples in 2 updates: 512 samples a step, 256 an update."""
    if isinstance(recipe, Rl):
        prompts, samples, updates = recipe.prompts_per_step, recipe.samples_per_step, recipe.updates_per_step
        rounds = recipe.dynamic_sampling.max_rounds if recipe.dynamic_sampling.enabled else 1
    else:
        prompts, samples, updates, rounds = None, recipe.batch_size, 1, 1
    longest = recipe.max_length

    def row(name: str, times: int, share: int) -> Batch:
        """`times` steps, or one part of `share` of a step."""
        count = samples * times // share
        return Batch(
            name=name,
            prompts=None if prompts is None else prompts * times // share,
            samples=count,
            tokens=count * longest,
            updates=updates * times // share,
        )

    # So many samples fit a micro-batch even at full length; shorter ones are packed, and more fit.
    fitting = min(recipe.micro_batch_tokens // longest, samples // updates)
    return Batches(
        run=row(f"run of {recipe.steps} steps", recipe.steps, 1),
        step=row("step", 1, 1),
        update=row("update", 1, updates),
        micro_batch=Batch(
            name="micro-batch", prompts=None, samples=fitting, tokens=recipe.micro_batch_tokens, updates=None
        ),
        micro_batches_per_update=-(-(samples // updates) // fitting),
        most_prompts_per_step=None if prompts is None else prompts * rounds,
    )
