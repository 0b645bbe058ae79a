"""The picture of a run: which panels it has, what they show, and that its file is whole."""

import struct
import sys

import pytest

from foresail.runlog.canvas import save_figure
from foresail.runlog.plots import plot_curves, points, running_mean, sum_up, write_number

RL = [
    {
        "step": step,
        "rollout/accuracy": step / 20,
        "rollout/reward": step / 10 - 1,
        "response_length/mean": 9.0 + step,
        "actor/entropy": None if step == 3 else 0.5,
        "perf/throughput": 15_000.0,
        "actor/grad_norm": 1.0,
    }
    for step in range(1, 21)
]
SFT = [
    {"step": step, "train/loss": 3 / step, "train/lr": 1e-3, "perf/throughput": 4e4} for step in range(1, 101)
]


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_png_is_written_and_looks_like_one(tmp_path):
    save_figure(plot_curves(RL, "demo"), tmp_path / "curves.png")
    content = (tmp_path / "curves.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert width > height > 800
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


def test_panels_of_a_reinforced_run():
    figure = plot_curves(RL, "demo")
    assert titles(figure) == [
        "Accuracy",
        "Response length, tokens",
        "Entropy, nats per token",
        "Speed, tokens per second",
    ]
    length = figure.axes[1]
    assert list(length.lines[0].get_ydata()) == [9.0 + step for step in range(1, 21)]
    assert length.get_title(loc="right") == "10 → 29"
    assert len(figure.axes[2].lines[0].get_xdata()) == 19, "a step without a number is left out"


def test_panels_of_a_fine_tuned_run():
    figure = plot_curves(SFT)
    assert titles(figure) == ["Loss", "Learning rate", "Speed, tokens per second"]
    raw, smooth = figure.axes[0].lines[:2]
    assert list(raw.get_ydata()) == [3 / step for step in range(1, 101)]
    assert smooth.get_ydata()[50] == pytest.approx(3 / 51, rel=0.01)


def test_losses_on_held_out_corpora_stand_beside_the_loss():
    measured = {"val/loss/web": 2.0, "val/loss/code": 1.5}
    figure = plot_curves([record | (measured if record["step"] % 20 == 0 else {}) for record in SFT])
    assert titles(figure)[:2] == ["Loss", "Held-out loss"]
    assert [line.get_label() for line in figure.axes[1].get_lines()] == ["web", "code"]
    assert list(figure.axes[1].get_lines()[0].get_xdata()) == [20, 40, 60, 80, 100]


def test_reward_has_a_panel_only_where_there_is_no_accuracy():
    without = [{name: value for name, value in record.items() if name != "rollout/accuracy"} for record in RL]
    assert titles(plot_curves(without))[0] == "Reward"
    assert "Reward" not in titles(plot_curves(RL))


OWN = [
    {
        "step": step,
        "rollout/accuracy": 0.0,
        "critic/score/mean": 0.2 + step / 100,
        "rollout/reward": 0.3 + step / 100,
        **{f"reward/{name}/mean": step / 50 for name in ("brevity", "form", "tone", "words", "more")},
        "reward/spread": 3.0,
        "response_length/mean": 9.0,
        "actor/entropy": 0.5,
    }
    for step in range(1, 9)
]


def test_a_continuous_reward_comes_first_and_an_accuracy_of_nothing_not_at_all():
    figure = plot_curves(OWN)
    assert titles(figure) == ["Reward", "Reward terms", "Response length, tokens", "Entropy, nats per token"]
    assert figure.axes[0].get_title(loc="right") == "0.31 → 0.38"
    terms = figure.axes[1]
    assert [text.get_text() for text in terms.get_legend().get_texts()] == [
        "brevity",
        "form",
        "tone",
        "words",
    ]
    assert list(terms.lines[0].get_ydata()) == [step / 50 for step in range(1, 9)]
    said = [{**record, "rollout/accuracy": 0.1} for record in OWN]
    assert titles(plot_curves(said))[:3] == ["Reward", "Reward terms", "Accuracy"]


def test_terms_beside_a_grader_come_after_the_accuracy():
    plain = [{**record, "critic/score/mean": 0.0} for record in OWN]
    assert titles(plot_curves(plain))[:2] == ["Accuracy", "Reward terms"]
    without = [
        {
            name: value
            for name, value in record.items()
            if name not in ("rollout/accuracy", "critic/score/mean")
        }
        for record in OWN
    ]
    name = "val-core/sums/reward/mean@1"
    figure = plot_curves([{"step": 0, name: 0.25}, *without])
    assert titles(figure)[:2] == ["Reward", "Reward terms"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()][1] == "held out, sums mean@1"


def test_curves_begin_with_the_first_loss():
    """Whatever else was logged before it."""
    figure = plot_curves([{"step": 0, "self_test/prompts": 1.0}, *SFT])
    for axes in figure.axes:
        assert axes.get_xlim()[0] == 1


def test_held_out_points_are_plotted_and_told():
    name = "val-core/arithmetic/acc/mean@8"
    figure = plot_curves([{"step": 0, name: 0.45}, *RL[:-1], {**RL[-1], name: 0.985}])
    accuracy = figure.axes[0]
    diamonds = [line for line in accuracy.lines if line.get_marker() == "D"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in diamonds] == [
        ([0, 20], [0.45, 0.985])
    ]
    assert [text.get_text() for text in accuracy.get_legend().get_texts()] == [
        "training problems",
        "held out, arithmetic mean@8",
    ]
    assert accuracy.get_title(loc="right") == "45% → 98.5%"


@pytest.mark.parametrize(("share", "lowest_top"), [(0.9, 1.0), (0.05, 0.05)])
def test_small_shares_fill_their_panel(share: float, lowest_top: float):
    axes = plot_curves([{"step": step, "rollout/accuracy": share * step / 9} for step in range(10)]).axes[0]
    bottom, top = axes.get_ylim()
    assert bottom == 0 and lowest_top <= top <= 1.2 * lowest_top


def test_every_held_out_set_has_a_curve_of_its_own_name():
    names = [f"val-core/{source}/acc/mean@1" for source in "abcd"]
    accuracy = plot_curves([*RL, {"step": 21, **dict.fromkeys(names, 0.5)}]).axes[0]
    told = [text.get_text() for text in accuracy.get_legend().get_texts()]
    assert told == ["training problems", *(f"held out, {source} mean@1" for source in "abcd")]


def test_single_step_and_single_metric_can_be_plotted(tmp_path):
    save_figure(plot_curves(RL[:1]), tmp_path / "one.png")
    save_figure(plot_curves([{"step": 0, "val-core/a/acc/mean@1": 0.5}]), tmp_path / "two.png")
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_to_plot_is_said(tmp_path):
    for metrics in ([], [{"step": 1, "unknown": 1.0}]):
        with pytest.raises(ValueError, match="nothing to plot yet"):
            save_figure(plot_curves(metrics), tmp_path / "curves.png")
    assert list(tmp_path.iterdir()) == []


def test_missing_matplotlib_is_named(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        save_figure(plot_curves(RL), tmp_path / "curves.png")


def test_plotting_leaves_pyplot_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now fails
    save_figure(plot_curves(RL[:2]), tmp_path / "curves.png")


def test_numbers_in_the_corner():
    assert sum_up([9.4, 12.0, 31.0], "first to last", "count") == "9.4 → 31"
    assert sum_up([2.0], "first to last", "decimal") == "2.00"
    assert sum_up([10_000.0, 20_400.0], "mean", "count") == "15.2k on average"
    assert sum_up([1e-4, 1e-3, 0.0], "peak", "tiny") == "1.0e-03 at most"
    assert write_number(2_500_000, "count") == "2.5M"
    assert running_mean([0, 1, 5], 1) == [0.5, 2, 3]
    assert points([{"step": 1, "a": float("nan")}, {"step": 2, "a": 1}], "a") == ([2], [1.0])
