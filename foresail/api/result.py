"""The results of a run, read from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foresail.recipe.checkpoint_path import trained_checkpoint
from foresail.runlog.directory import RunDirectory
from foresail.runlog.notebook import in_notebook, show_picture

if TYPE_CHECKING:
    import pandas


class Records(list[dict[str, Any]]):
    """A list of dicts; `frame()` is the same as a pandas DataFrame."""

    def frame(self) -> pandas.DataFrame:
        try:
            import pandas
        except ImportError as error:
            raise ImportError("frame() needs pandas: pip install pandas") from error
        return pandas.DataFrame(list(self))


@dataclass(frozen=True)
class Result:
    """A run on disk, finished or not: `Result("runs/rl")`."""

    run: Path

    def __init__(self, run: Path | str) -> None:
        object.__setattr__(self, "run", RunDirectory.open(run).path)

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory.open(self.run)

    @property
    def checkpoint(self) -> Path:
        """The best checkpoint if one is marked, else the newest: a Hugging Face directory."""
        return trained_checkpoint(self.directory.path)

    @property
    def metrics(self) -> Records:
        """One dict a step, with the names of `docs/runs.md`."""
        return Records(self.directory.read_metrics())

    @property
    def samples(self) -> Records:
        """Prompt, response, verdict and reward of every sample of the last step; none of stages without samples."""
        steps = self.directory.rollout_steps()
        return self.samples_of(steps[-1]) if steps else Records()

    def samples_of(self, step: int) -> Records:
        return Records(self.directory.read_rollouts(step))

    def show(self) -> None:
        """The summary, and the curves: in a notebook the picture itself, else where it was drawn."""
        from foresail.runlog.summary import show

        show(self.run)
        if in_notebook() and (self.run / "curves.png").is_file():
            show_picture(self.run / "curves.png")
