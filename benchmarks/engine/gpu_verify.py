"""What drafts cost: milliseconds of one engine step by batch, drafted tokens per row, and context.

The drafts are random tokens, so nearly all are rejected and every row goes on by one token a step: this is the
price of looking, without the gain. The scheduler and the simulator read the table from a file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from gpu_clock import timed
from gpu_loads import draw_requests, even

from foresail.engine.drafts import Draft
from foresail.engine.engine import Engine
from foresail.engine.request import Request
from foresail.simulate.costs import MeasuredStep

BATCHES = (256, 128, 64, 32, 16, 8, 4, 2, 1)
DRAFT_LENGTHS = (0, 1, 2, 4, 8, 16)
CONTEXTS = (512, 2048)
WARM_UP_STEPS, STEPS = 2, 6
BAR = 4  # the draft length that the summary compares with plain steps


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One cell; the context is what rows had, on average, half-way through."""

    batch: int
    draft_length: int
    context: int
    milliseconds: float


def measure_costs(engine: Engine, vocab_size: int) -> Iterator[list[Cost]]:
    """A batch's cells at a time. The largest batch is filled once, then rows are cancelled until one is left.

    At 7B some 40 s, a third of it prefill.
    """
    steps_per_batch = len(DRAFT_LENGTHS) * (WARM_UP_STEPS + STEPS)
    most_tokens = 2 * len(BATCHES) * steps_per_batch + max(DRAFT_LENGTHS)  # twice: a draft may be right
    for number, context in enumerate(CONTEXTS):
        load = even("verify", "drafts", groups=max(BATCHES), prompt=context, new=most_tokens)
        rows = draw_requests(load, vocab_size, number)
        seat(engine, rows)
        for batch in BATCHES:
            rows = cut(engine, rows, batch)
            yield [measure_cost(engine, rows, length, vocab_size) for length in DRAFT_LENGTHS]
        cut(engine, rows, 0)


def cut(engine: Engine, rows: list[Request], batch: int) -> list[Request]:
    for row in rows[batch:]:
        engine.cancel(row.id)
    return rows[:batch]


def seat(engine: Engine, requests: list[Request]) -> None:
    """Step until all prompts are in the cache and every row decodes."""
    for request in requests:
        engine.add(request)
    while len(engine.slots) < len(requests):
        engine.step()


def measure_cost(engine: Engine, rows: list[Request], draft_length: int, vocab_size: int) -> Cost:
    """A step in which every row brings a draft of that length."""
    drafts = [make_drafts(rows, draft_length, vocab_size) for _ in range(WARM_UP_STEPS + STEPS)]
    take_steps(engine, drafts[:WARM_UP_STEPS])
    _, seconds = timed(take_steps, engine, drafts[WARM_UP_STEPS:])
    contexts = [len(engine.tokens(row.id) or ()) for row in rows]
    return Cost(
        batch=len(rows),
        draft_length=draft_length,
        context=round(mean(contexts)) - STEPS // 2,
        milliseconds=round(1000 * seconds / STEPS, 2),
    )


def take_steps(engine: Engine, drafts: list[dict[str, Draft]]) -> None:
    for draft in drafts:
        engine.step(engine.drafts_by_slot(draft) if draft else None)


def make_drafts(rows: list[Request], length: int, vocab_size: int) -> dict[str, Draft]:
    if not length:
        return {}
    return {row.id: Draft(tokens=tuple(random.randrange(vocab_size) for _ in range(length))) for row in rows}


def table(costs: list[Cost]) -> list[list[float]]:
    """What goes to the file, by the columns of `foresail.simulate.costs`."""
    return [[getattr(cost, name) for name in MeasuredStep._fields] for cost in costs]


def describe(costs: list[Cost]) -> str:
    """One batch's line: plain step, step with BAR drafted tokens a row, and all lengths."""
    by_length = {cost.draft_length: cost.milliseconds for cost in costs}
    cells = "  ".join(f"{length}: {milliseconds:.2f}" for length, milliseconds in by_length.items())
    return (
        f"  batch {costs[0].batch:>3}, context {costs[0].context:>4}: plain {by_length[0]:.2f} ms, "
        f"with {BAR} drafted {by_length[BAR]:.2f} ms ({by_length[BAR] / by_length[0]:.2f}x)   [{cells}]"
    )
