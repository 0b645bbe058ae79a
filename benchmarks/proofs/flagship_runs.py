"""What the flagship runs share: stages that go on where they were, evaluations made once, curves of a run.

Everything is kept under one folder, so a command that was cut off is simply given again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.quickstart.stages import Interrupted, train_stage
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.runlog.atomic import write_text
from foresail.runlog.directory import RunDirectory

RECIPES = Path(__file__).parents[2] / "recipes" / "flagship"
NUM_SAMPLES = 4  # per held-out problem, at temperature 1, beside the greedy attempt
FIGURES = ("greedy", f"mean@{NUM_SAMPLES}", f"pass@{NUM_SAMPLES}")
DRAWN = (
    "groups/useful",
    "rollout/accuracy",
    "critic/score/mean",
    "response_length/mean",
    "actor/entropy",
    "timing_s/step",
)


# Sums over a run, by the name they are printed with; groups that were given up do not count.
TOTALS = {
    "seconds": "timing_s/step",
    "rollout_seconds": "timing_s/rollout",
    "update_seconds": "timing_s/update",
    "groups": "rollout/groups_launched",
}


Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a flagship's runs live, what it starts from, and what its caller changes in the recipes.

    `jobs` RL runs go on at once.
    """

    folder: Path
    model: Path
    rl: tuple[str, ...] = ()
    sft: tuple[str, ...] = ()
    jobs: int = 1

    def sft_recipe(self, file: str, name: str, *changes: str) -> Sft:
        recipe = self._load(file, name, [f"model.path={self.model}", *changes, *self.sft])
        assert isinstance(recipe, Sft)
        return recipe

    def rl_recipe(self, file: str, name: str, *changes: str) -> Rl:
        recipe = self._load(file, name, [*changes, *self.rl])
        assert isinstance(recipe, Rl)
        return recipe

    def _load(self, file: str, name: str, changes: list[str]) -> Stage:
        return load_recipe(RECIPES / file, [f"run.root={self.folder}", f"run.name={name}", *changes])


def reinforce_all(recipes: Sequence[Rl], jobs: int) -> dict[str, Any]:
    """Every run and how it is judged, by its name; all of them are in one folder."""
    logs = recipes[0].run.folder.parent
    return side_by_side(reinforce, {recipe.run.name: recipe for recipe in recipes}, logs, jobs)


def side_by_side(
    work: Callable[[Item], Result], items: Mapping[str, Item], logs: Path, jobs: int
) -> dict[str, Result]:
    """`work` on every item, by name; with `jobs` above 1 in processes, and what each says in logs/NAME.log."""
    if jobs == 1:
        return {name: work(item) for name, item in items.items()}
    logs.mkdir(parents=True, exist_ok=True)
    files = [logs / f"{name}.log" for name in items]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            results = list(pool.map(partial(quietly, work), items.values(), files))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.terminate()  # a stage ends its step and saves; an evaluation is begun again
            raise Interrupted("the runs beside each other") from None
    return dict(zip(items, results, strict=True))


def quietly(work: Callable[[Item], Result], item: Item, file: Path) -> Result:
    """What it says goes to the file, not between the lines of others."""
    with file.open("a") as log, redirect_stdout(log):
        return work(item)


def reinforce(recipe: Rl) -> dict[str, Any]:
    return judge(recipe, train_stage(recipe).checkpoint, recipe.run.folder / "after")


def judge(recipe: Rl, checkpoint: Path, output: Path, seed: int = 0) -> dict[str, Any]:
    """Figures with 95 % intervals on the recipe's held-out problems; made once, then read from the folder."""
    (held_out,) = recipe.eval
    summary = output / "summary.json"
    if not summary.exists():
        evaluate_checkpoint(
            checkpoint,
            held_out,
            recipe.sampling,
            num_samples=NUM_SAMPLES,
            output=output,
            grader=recipe.reward.grader,
            seed=seed,
            device=recipe.run.device,
            dtype=recipe.model.dtype,
        )
    figures = json.loads(summary.read_text())
    judged = {name: figures[name] for name in FIGURES} | {"mean_length": figures["samples"]["mean_length"]}
    print(describe(f"{output.parent.name}/{output.name}", judged), flush=True)
    return judged


def describe(name: str, figures: dict[str, Any]) -> str:
    """One line: "seed-0/after     greedy 61.0 % (56.6-65.2)   mean@4 …"."""
    shares = {key: [100 * figures[key][part] for part in ("value", "low", "high")] for key in FIGURES}
    columns = [f"{key} {value:5.1f} % ({low:.1f}-{high:.1f})" for key, (value, low, high) in shares.items()]
    return f"{name:<24}" + "   ".join(columns)


def spread(values: Sequence[float]) -> dict[str, Any]:
    """spread([0.5, 0.7]) -> {"mean": 0.6, "stdev": 0.1414, "by_seed": [0.5, 0.7]}."""
    deviation = stdev(values) if len(values) > 1 else 0.0
    return {"mean": round(fmean(values), 4), "stdev": round(deviation, 4), "by_seed": list(values)}


def total(folder: Path, metric: str) -> float:
    """Over all steps of the run, however many calls they took; loading and saving are in none."""
    return round(sum(record.get(metric) or 0.0 for record in RunDirectory.open(folder).read_metrics()), 1)


def curves(folder: Path) -> dict[str, list[list[float]]]:
    """[step, value] of the metrics that are drawn, held-out accuracies of all sources included."""
    points: dict[str, list[list[float]]] = {}
    for record in RunDirectory.open(folder).read_metrics():
        for name, value in record.items():
            if value is not None and (name in DRAWN or name.startswith("val-core/")):
                points.setdefault(name, []).append([record["step"], round(float(value), 5)])
    return points


def finish(folder: Path, results: dict[str, Any], runs: Sequence[Path]) -> None:
    """results.json has all curves for the picture; the last line printed is the same without them."""
    results |= {
        "took": {path.name: {name: total(path, metric) for name, metric in TOTALS.items()} for path in runs}
    }
    full = results | {"curves": {path.name: curves(path) for path in runs}}
    write_text(folder / "results.json", json.dumps(full, indent=1) + "\n")
    print(json.dumps(results))
