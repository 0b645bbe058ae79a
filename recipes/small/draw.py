"""The curves of runs of run.py side by side: held-out loss, recall of needles while lengthening, accuracy in RL.

python recipes/small/draw.py runs/small runs/small-mtp runs/small-moe --out docs/small.png
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foresail.runlog.canvas import CORAL, NAVY, TEAL, new_figure, quiet, save_figure
from foresail.runlog.directory import RunDirectory

SOURCES = ("web", "math", "code")
NEEDLES = ("niah_single", "niah_multikey")
TASKS = ("arithmetic", "word-problems")
STYLES = ("-", "--", ":")
COLORS = (NAVY, TEAL, CORAL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="folders of run.py")
    parser.add_argument("--out", type=Path, default=Path("small.png"))
    options = parser.parse_args()
    save_figure(draw(options.runs), options.out)


def draw(runs: Sequence[Path]) -> Any:
    with new_figure((12, 3.6)) as figure:
        loss, recall, accuracy = figure.subplots(1, 3)
        for run, color in zip(runs, COLORS, strict=False):
            for source, style in zip(SOURCES, STYLES, strict=True):
                points = [*curve(run / "pretrain", f"val/loss/{source}", "data/tokens_seen")]
                label = run.name if source == SOURCES[0] else None
                loss.plot(*unzip(points), style, color=color, label=label)
            for task, style in zip(NEEDLES, STYLES, strict=False):
                points = [*at_end(run / "pretrain", f"long_context/{task}/")]
                recall.plot(*unzip(points), style, marker="o", markersize=3, color=color)
            for task, style in zip(TASKS, STYLES, strict=False):
                points = [*curve(run / "rl", f"val-core/{task}/acc/mean@1", "step")]
                accuracy.plot(*unzip(points), style, color=color)
        quiet(loss, title="Loss: web —, maths --, code ··")
        quiet(recall, title="Needles by length: one key —, more --")
        quiet(accuracy, title="Accuracy in RL: sums —, words --")
        for axes in (recall, accuracy):
            axes.set_ylim(-0.02, 1.02)
        loss.legend(frameon=False)
    return figure


def curve(folder: Path, name: str, along: str) -> Iterator[tuple[float, float]]:
    for line in read(folder):
        if name in line:
            yield line[along], line[name]


def at_end(folder: Path, prefix: str) -> Iterator[tuple[float, float]]:
    """By the last part of the name, which is a length, as it was measured last."""
    measured = [line for line in read(folder) if any(name.startswith(prefix) for name in line)]
    for name, value in measured[-1].items() if measured else ():
        if name.startswith(prefix):
            yield float(name.removeprefix(prefix)), value


def read(folder: Path) -> list[dict[str, Any]]:
    return RunDirectory(folder).metrics.read() if folder.exists() else []


def unzip(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


if __name__ == "__main__":
    main()
