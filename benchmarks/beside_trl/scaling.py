"""The scaling part of `vs_trl.py`: Foresail's own step time against samples, response length and model size.

One size is varied at a time and the others stay. All runs share this process, so that start-up, which a GPU takes
long over, is paid once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import linear_regression
from tempfile import TemporaryDirectory
from typing import Any

from load import Load, our_recipe, prepare
from ours import describe
from plots import draw_scaling
from seconds import median_seconds
from shapes import SHAPES, SMALL

from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl

STEPS = 6  # the first warms up
BASES = {
    "cpu": Load(
        name="scaling",
        shape=SMALL,
        device="cpu",
        prompts=8,
        samples=8,
        operations=5,
        new_tokens=32,
        updates=1,
        micro_batches=1,
        page_size=8,
    ),
    "cuda": Load(
        name="scaling",
        shape=SHAPES["135M"],
        device="cuda",
        prompts=32,
        samples=8,
        operations=30,
        new_tokens=128,
        updates=1,
        micro_batches=2,
    ),
}
GROWTH = (1, 2, 4, 8)
PARTS = ("rollout", "update", "step")


def vary(base: Load) -> dict[str, list[tuple[float, Load]]]:
    """What is varied -> sizes and loads. Micro-batches stay as large as they are: more samples are more of them."""
    layers = base.shape.num_layers
    shapes = [base.shape.model_copy(update={"num_layers": layers * n // 4}) for n in GROWTH]
    return {
        "responses": [
            (
                base.responses * n,
                replace(base, prompts=base.prompts * n, micro_batches=base.micro_batches * n),
            )
            for n in GROWTH
        ],
        "response tokens": [
            (base.new_tokens * n, replace(base, new_tokens=base.new_tokens * n)) for n in GROWTH
        ],
        "million parameters": [(shape.num_parameters / 1e6, replace(base, shape=shape)) for shape in shapes],
    }


def measure_scaling(device: str, output: Path) -> Iterator[dict[str, Any]]:
    """The sweeps so far, drawn, after every one."""
    sweeps: dict[str, Any] = {}
    for name, loads in vary(BASES[device]).items():
        print(f"\nStep time by {name}, {device}", flush=True)
        points = []
        for size, load in loads:
            points.append({"size": size, **measure(load)})
            parts = ", ".join(f"{part} {points[-1][part]:.3f}" for part in PARTS)
            print(f"  {size:>8g}  {parts}", flush=True)
        fit = linear_regression([point["size"] for point in points], [point["step"] for point in points])
        sweeps[name] = {"points": points, "slope": fit.slope, "intercept": fit.intercept}
        sweeps[name]["farthest"] = max(
            abs(fit.intercept + fit.slope * point["size"] - point["step"]) / point["step"] for point in points
        )
        print(f"  farthest from a straight line: {sweeps[name]['farthest']:.0%}", flush=True)
        draw_scaling(sweeps, output / f"scaling-{device}.png")
        yield sweeps


def measure(load: Load) -> dict[str, Any]:
    """Median seconds by part of a few steps, and all of them."""
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("w") as log, redirect_stdout(log):
        checkpoint = Path(folder) / "model"
        prompt_tokens = prepare(load, checkpoint, STEPS)
        recipe = our_recipe(load, Path(folder), checkpoint, steps=STEPS, prompt_tokens=prompt_tokens)
        rows = RunDirectory.open(run_rl(recipe).run).read_metrics()
        steps = [describe(row) for row in rows if row["step"] > 1]
    return median_seconds(steps, PARTS) | {"steps": [step["seconds"] for step in steps]}
