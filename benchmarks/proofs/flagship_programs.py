"""Small programs under the rewards `all`, `strict` and `soft`, from a usual start or a hard one, by seed.

Every seed has one SFT, from which the three rewards go on; what is right is judged alike: all tests pass. A start
is so many steps of SFT. Where it must not be too good, its samples on the held-out tasks are counted first, and
with too many right the next shorter SFT is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from flagship_runs import FIGURES, NUM_SAMPLES, Place, finish, judge, reinforce_all, side_by_side, spread

from foresail.quickstart.stages import train_stage
from foresail.runlog.directory import RunDirectory

SCHEMES = ("all", "strict", "soft")
SAMPLED = f"mean@{NUM_SAMPLES}"


@dataclass(frozen=True)
class Start:
    """Steps of SFT to try, one after another, until fewer than `below` of the samples are right."""

    sft_steps: tuple[int, ...]
    below: float


STARTS = {"usual": Start((8,), 1.0), "hard": Start((4, 3, 2), 0.05)}


def programs(place: Place, seeds: Sequence[int], start: str = "usual") -> None:
    starts = side_by_side(
        partial(find_start, place, STARTS[start]),
        {f"seed-{seed}": seed for seed in seeds},
        place.folder,
        place.jobs,
    )
    recipes = [
        place.rl_recipe(
            "programs-rl.toml",
            run_name(seed, scheme),
            f"run.seed={seed}",
            f"model.path={starts[f'seed-{seed}']['checkpoint']}",
            f"reward.code.scheme={scheme}",
        )
        for seed in seeds
        for scheme in SCHEMES
    ]
    results: dict[str, Any] = {
        "start": start,
        "before_sft": judge(recipes[0], place.model, place.folder / "before"),
        "after_sft": starts,
        "after_rl": reinforce_all(recipes, place.jobs),
    }
    results["over_seeds"] = compare(place.folder, seeds, results["after_rl"])
    for scheme, figures in results["over_seeds"].items():
        print(describe(scheme, figures))
    finish(place.folder, results, [place.folder / recipe.run.name for recipe in recipes])


def run_name(seed: int, scheme: str) -> str:
    return f"seed-{seed}-{scheme}"


def find_start(place: Place, start: Start, seed: int) -> dict[str, Any]:
    """The checkpoint of the longest SFT that is not too good, with its figures."""
    shares = []
    for steps in start.sft_steps:
        name = run_name(seed, f"sft-{steps}")
        recipe = place.sft_recipe("programs-sft.toml", name, f"run.seed={seed}", f"steps={steps}")
        tuned = train_stage(recipe).checkpoint
        judged_as = place.rl_recipe("programs-rl.toml", name, f"model.path={tuned}")
        figures = judge(judged_as, tuned, place.folder / name / "after")
        if figures[SAMPLED]["value"] < start.below:
            return figures | {"sft_steps": steps, "checkpoint": str(tuned)}
        shares.append(f"{steps} steps {figures[SAMPLED]['value']:.1%}")
    raise ValueError(
        f"seed {seed}: every start is too good for one below {start.below:.0%} ({', '.join(shares)}); "
        "lower optimizer.lr with --sft"
    )


# Over seeds.


def compare(folder: Path, seeds: Sequence[int], after: dict[str, Any]) -> dict[str, Any]:
    """By reward: each figure's mean and spread, what it is ahead of `all` on the same seed, what was drawn."""
    by_scheme: dict[str, Any] = {}
    for scheme in SCHEMES:
        names = [run_name(seed, scheme) for seed in seeds]
        values = {key: [after[name][key]["value"] for name in names] for key in FIGURES}
        of_all = {key: [after[run_name(seed, "all")][key]["value"] for seed in seeds] for key in FIGURES}
        logs = [RunDirectory.open(folder / name).read_metrics() for name in names]
        by_scheme[scheme] = {
            **{key: spread(values[key]) for key in FIGURES},
            "minus_all": {
                key: spread([own - other for own, other in zip(values[key], of_all[key], strict=True)])
                for key in FIGURES
            },
            "useful_at_first": spread([first_of(log, "groups/useful") for log in logs]),
            "groups": spread(
                [sum(record.get("rollout/groups_launched") or 0 for record in log) for log in logs]
            ),
        }
    return by_scheme


def first_of(records: Sequence[dict[str, Any]], metric: str) -> float:
    return float(next((record[metric] for record in records if record.get(metric) is not None), 0.0))


def describe(scheme: str, figures: dict[str, Any]) -> str:
    """One line: "all      greedy 91.2 ± 1.7 %   mean@4 …   useful at first 35 %"."""
    shares = [
        f"{key} {100 * figures[key]['mean']:.1f} ± {100 * figures[key]['stdev']:.1f} %" for key in FIGURES
    ]
    drawn = (
        f"groups {figures['groups']['mean']:.0f}, useful at first {figures['useful_at_first']['mean']:.0%}"
    )
    return f"{scheme:<8}" + "   ".join([*shares, drawn])
