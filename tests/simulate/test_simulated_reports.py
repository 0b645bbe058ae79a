"""What a simulation prints, plots and refuses."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine
from small_simulations import ROOT, TABLE, run_one, small

from foresail.recipe.reading.load import RecipeError
from foresail.simulate.report import rows_over_time, summarize
from foresail.simulate.settings import load_simulation
from foresail.simulate.step import simulate

# What comes out.


def test_the_picture_holds_all_row_seconds() -> None:
    result = run_one()
    names = [*result.history]
    edges = np.linspace(0, result.seconds, 51)
    rows = rows_over_time([result], names, edges)
    for place, name in enumerate(names):
        exact = sum(
            before[1] * (after[0] - before[0])
            for before, after in pairwise([*result.history[name], (result.seconds, 0)])
        )
        assert (rows[place] * np.diff(edges)).sum() == pytest.approx(exact)


def test_summaries_add_up_over_steps() -> None:
    simulation = small(steps=3)
    results = simulate(simulation)
    summary = summarize(simulation, results)
    assert summary["seconds"] == pytest.approx(sum(result.seconds for result in results))
    assert len({result.seconds for result in results}) == 3
    json.dumps(summary)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "recipes/simulate").glob("*.toml")), ids=lambda file: file.stem
)
def test_shipped_simulations_load_and_run_when_made_small(file: Path) -> None:
    full = load_simulation(file, [f"cluster.costs={TABLE}"])
    assert full.name == file.stem
    tiny = load_simulation(
        file, [f"cluster.costs={TABLE}", "cluster.instances=2", "workload.groups=6", "steps=1"]
    )
    (result,) = simulate(tiny)
    assert result.chosen == 6


def test_mistakes_are_told_in_the_words_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[cluster]\ninstances = 2\ncrad = 'H20'\n[workload]\ngroups = 2\n")
    with pytest.raises(RecipeError) as caught:
        load_simulation(file, ["rollout.policy=longest"])
    message = str(caught.value)
    assert "cluster.crad: unknown key; the nearest is cluster.card" in message
    assert "workload.samples" in message
    assert "rollout.policy must be one of" in message


def test_what_cannot_fit_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        ValueError, match=r"leaves no memory for one request of 2,050 tokens.*cards_per_instance"
    ):
        small(cluster={"weight_gb": 126.8})
    with pytest.raises(ValueError, match="mean_tokens 2000 is not below"):
        small(workload={"mean_tokens": 2000})


def test_the_command_writes_numbers_and_a_picture(foresail: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        f"[cluster]\ninstances = 2\ncosts = '{TABLE}'\n"
        "[workload]\ngroups = 4\nsamples = 2\nmean_tokens = 100\nmax_tokens = 500\n"
    )
    done = foresail.run("simulate", file, "name=mine", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "throughput" in done.out and "tail" in done.out
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["name"] == "mine" and summary["chosen"] == 4
    assert (tmp_path / "out/gantt.png").read_bytes().startswith(b"\x89PNG")
    tools = (
        "workload.tools.mean_turns=2",
        "workload.tools.max_turns=4",
        "workload.tools.recorded_seconds=[3,9]",
    )
    done = foresail.run("simulate", file, *tools, "--out", tmp_path / "with tools")
    assert done.code == 0, done.err
    assert "at tools" in done.out and "queued" in done.out
    summary = json.loads((tmp_path / "with tools/summary.json").read_text())
    assert summary["episodes"] == 8 <= summary["turns"] <= 32 and 0 < summary["tool_share"] < 1
    assert summary["at_tools_mean"] < summary["at_tools_most"] <= 8
    assert foresail.run("simulate", file, "cluster.costs=gone.json").err.startswith(
        "error: the table of step costs"
    )
