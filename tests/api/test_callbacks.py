"""Functions of a script that a run calls after its steps, and that may end it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_world import HELD_OUT

import foresail as package
from foresail.recipe.reading.load import RecipeError
from foresail.train.callbacks import StepReport

SIZES: dict[str, Any] = {
    "data": "arithmetic:count=40,steps=2",
    "steps": 4,
    "prompts_per_step": 4,
    "samples_per_prompt": 4,
    "max_prompt_tokens": 12,
    "micro_batch_tokens": 256,
    "sampling": {"max_new_tokens": 8},
}


def test_callbacks_hear_of_steps_and_evaluations_and_may_end_the_run(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    steps: list[StepReport] = []
    evaluations: list[StepReport] = []

    def on_step(report: StepReport) -> None:
        steps.append(report)
        if report.step == 2:
            report.stop()

    result = package.rl(
        model=str(tiny_checkpoint),
        run={"root": str(tmp_path), "name": "rl", "device": "cpu"},
        eval={"source": HELD_OUT, "limit": 4},
        eval_every=2,
        on_step=on_step,
        on_evaluation=evaluations.append,
        **SIZES,
    )
    assert [report.step for report in steps] == [1, 2] and steps[0].steps == 4
    assert [report.step for report in evaluations] == [0, 2]
    assert steps[1].metrics["rollout/reward"] == result.metrics[-1]["rollout/reward"]
    assert result.directory.checkpoint_steps() == [2], "it was saved where it ended"
    heard: list[int] = []
    assert package.resume(result, on_step=lambda report: heard.append(report.step)).metrics[-1]["step"] == 4
    assert heard == [3, 4]


def test_what_is_no_function_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="on_step is a str; give a function"):
        package.rl(model=str(tiny_checkpoint), run={"root": str(tmp_path)}, on_step="print", **SIZES)

    class Awaited:
        async def __call__(self, report: StepReport) -> None: ...

    for coroutine in (Awaited(), Awaited().__call__):
        with pytest.raises(RecipeError, match="on_evaluation is a coroutine, which nothing would wait for"):
            package.sft(model=str(tiny_checkpoint), data=[], on_evaluation=coroutine)
