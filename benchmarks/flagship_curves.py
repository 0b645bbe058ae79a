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
    """One panel a metric that some run has, one line a run that has it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = json.loads(results.read_text())["curves"]
    panels = {
        title: [
            (run, points)
            for run, series in curves.items()
            for name, points in series.items()
            if name.startswith(metric)
        ]
        for title, metric in PANELS
    }
    panels = {title: lines for title, lines in panels.items() if lines}
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4.2 * len(panels), 3.4), layout="constrained", squeeze=False
    )
    for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for run, points in lines:
            axis.plot(*zip(*points, strict=True), label=run, linewidth=1.4)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
