"""Batch arithmetic: prompts, samples and tokens of a step, an update and a micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


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


def count_batches(
    *,
    steps: int,
    samples: int,
    max_length: int,
    micro_batch_tokens: int,
    prompts: int | None = None,
    updates: int = 1,
    parts: int = 1,
) -> Batches:
    """Of a step's prompts and samples, split into `parts`, and its updates.

    64 prompts x 8 samples in 2 updates: 512 samples a step, 256 an update, or 512 if each is a whole pass (1 part).
    """

    def row(name: str, times: int, share: int, updates: int) -> Batch:
        """`times` steps, or one part of `share` of a step."""
        count = samples * times // share
        return Batch(
            name=name,
            prompts=None if prompts is None else prompts * times // share,
            samples=count,
            tokens=count * max_length,
            updates=updates,
        )

    # So many samples fit a micro-batch even at full length; shorter ones are packed, and more fit.
    fitting = min(micro_batch_tokens // max_length, samples // parts)
    return Batches(
        run=row(f"run of {steps} steps", steps, 1, updates * steps),
        step=row("step", 1, 1, updates),
        update=row("update", 1, parts, 1),
        micro_batch=Batch(
            name="micro-batch",
            prompts=None,
            samples=fitting,
            tokens=min(micro_batch_tokens, samples // parts * max_length),
            updates=None,
        ),
        micro_batches_per_update=-(-(samples // parts) // fitting),
    )


def join_batches(stages: Sequence[Batches], steps: int) -> Batches:
    """A run over all stages of a curriculum; the rest is that of the stage with the largest steps."""
    run = Batch(
        name=f"run of {steps} steps",
        prompts=None if stages[0].run.prompts is None else sum(stage.run.prompts or 0 for stage in stages),
        samples=sum(stage.run.samples for stage in stages),
        tokens=sum(stage.run.tokens for stage in stages),
        updates=sum(stage.run.updates or 0 for stage in stages),
    )
    return replace(max(stages, key=lambda stage: stage.step.tokens), run=run)


def grouped(number: int | None) -> str:
    """grouped(1048576) -> "1,048,576"; None is a dash."""
    return "-" if number is None else f"{number:,}"
