"""The picture of expert_load.jsonl, and what is kept of a long run."""

from __future__ import annotations

from pathlib import Path

from foresail.runlog.directory import MAX_LOADS, RunDirectory, is_kept
from foresail.runlog.expert_load_plot import plot_expert_load
from foresail.runlog.summary import plot_runs

LOAD = [[2, 2, 2, 2], [8, 0, 0, 0], [4, 0, 3, 1]]


def test_experts_are_drawn_over_their_layers_mean() -> None:
    last, _, history = plot_expert_load([{"step": 1, "load": LOAD}, {"step": 2, "load": LOAD}]).axes
    assert last.images[0].get_array().tolist() == [[1, 1, 1, 1], [4, 0, 0, 0], [2, 0, 1.5, 0.5]]
    busiest, idlest, mean = (line.get_ydata() for line in history.lines)
    assert (list(busiest), list(idlest), list(mean)) == ([7 / 3] * 2, [1 / 3] * 2, [1, 1])


def test_a_run_with_experts_has_the_picture_and_one_without_has_none(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", "")
    run.append_metrics(1, {"train/loss": 1.0})
    assert [path.name for path in plot_runs(run.path)] == ["curves.png"]
    run.append_expert_load(1, LOAD)
    run.append_expert_load(2, LOAD)
    assert [path.name for path in plot_runs(run.path)] == ["curves.png", "expert_load.png"]
    run.rewind(1)
    assert run.read_expert_load() == [{"step": 1, "load": LOAD}]


def test_a_long_run_keeps_some_hundred_of_them_and_the_last() -> None:
    for steps in (1, 7, MAX_LOADS, 777, 12_345):
        kept = [step for step in range(1, steps + 1) if is_kept(step, steps)]
        assert kept[-1] == steps and min(steps, MAX_LOADS // 2) <= len(kept) <= MAX_LOADS + 1
