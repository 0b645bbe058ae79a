"""The learning curves of a flagship part side by side, from its results.json."""

from __future__ import annotations

import json
import re
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
        drawn: dict[str, str] = {}  # colour by kind: seeds of one kind share it
        for run, points in lines:
            kind = kind_of(run)
            label = None if kind in drawn else kind
            line = axis.plot(*zip(*points, strict=True), label=label, color=drawn.get(kind), linewidth=1.4)
            drawn.setdefault(kind, line[0].get_color())
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)


def kind_of(run: str) -> str:
    """kind_of("seed-3-soft") -> "soft"; kind_of("seed-3") -> "seed-3", where runs differ in nothing else."""
    return re.sub(r"^seed-\d+-", "", run)
