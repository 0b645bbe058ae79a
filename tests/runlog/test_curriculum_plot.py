"""The picture of what a run drew: one panel for each kind of metric there is, a line where a stage begins."""

import pytest

from foresail.runlog.canvas import save_figure
from foresail.runlog.curriculum_plot import has_curriculum, plot_curriculum

RUN = [
    {
        "step": step,
        "curriculum/stage": 1 if step <= 4 else 2,
        "rollout/launched_level_1": 0.75 if step <= 4 else 0.25,
        "rollout/launched_level_3": 0.25,
        "rollout/accuracy_level_1": step / 10,
        "pool/easy": step,
        "pool/window_below": 3,
    }
    for step in range(1, 9)
]


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_panels_follow_the_metrics():
    assert titles(plot_curriculum(RUN)) == [
        "Problems launched, by level",
        "Right answers, by level",
        "Problems by where they stand",
    ]
    pools = [{"step": record["step"], "pool/easy": record["pool/easy"]} for record in RUN]
    assert titles(plot_curriculum(pools)) == ["Problems by where they stand"]
    assert has_curriculum(RUN) and has_curriculum(pools)
    assert not has_curriculum([{"step": 1, "rollout/accuracy": 0.5}])


def test_shares_are_stacked_and_stages_marked():
    shares, accuracies, pools = plot_curriculum(RUN).axes
    bottom, top = shares.collections[0], shares.collections[2]  # levels 1 and 3; 2 is empty between
    assert bottom.get_paths()[0].get_extents().y1 == pytest.approx(0.75)
    assert top.get_paths()[0].get_extents().y1 == pytest.approx(1.0)
    for axes in (shares, accuracies, pools):
        (mark,) = [line for line in axes.lines if line.get_label().startswith("_")]
        assert list(mark.get_xdata()) == [4.5, 4.5]
    labels = [text.get_text() for text in pools.get_legend().get_texts()]
    assert labels == ["in the easy pool", "below the window"]


def test_it_is_saved_to_a_file(tmp_path):
    save_figure(plot_curriculum(RUN, "demo"), tmp_path / "curriculum.png")
    assert (tmp_path / "curriculum.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
