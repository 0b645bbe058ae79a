"""The learning curves of a flagship part side by side, from its results.json."""

from __future__ import annotations

import json
from pathlib import Path

PANELS = (
    ("held-out accuracy, greedy", "val-core/"),
    ("accuracy of the samples drawn", "rollout/accuracy"),
    ("response length, tokens", "response_length/mean"),
)


def draw(results: Path, picture: Path) -> None:
    """One panel a metric, one line a run; runs without a metric (SFT) have no line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = json.loads(results.read_text())["curves"]
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(4.2 * len(PANELS), 3.4), layout="constrained")
    for axis, (title, metric) in zip(axes, PANELS, strict=True):
        for run, series in curves.items():
            for name, points in series.items():
                if name.startswith(metric):
                    axis.plot(*zip(*points, strict=True), label=run, linewidth=1.4)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
