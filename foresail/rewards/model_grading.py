"""Grading by a reward model, in a thread beside the rollout: all waiting answers are scored in one batch.

    grading = ModelGrading(settings, None, device="auto")    # the model's score is the reward
    grading = ModelGrading(settings, rules, device="auto")   # a term beside what `rules` say, or the other way

What it cannot read (too long, a token it does not have) is `ungradable`; a score that is no finite number, or an
error while computing it, is `crashed`. Neither is a score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from foresail.recipe.tables.reward import MODEL, Reward
from foresail.records import Verdict
from foresail.rewards.grading import Grading, crashed, failure
from foresail.rewards.learned import ScoredIds, Scorer, Ungradable, open_scorer
from foresail.rewards.loading import in_one_line
from foresail.rewards.queued_grading import GradingJob
from foresail.rewards.side_grading import SideGrading


class ModelGrading(SideGrading):
    def __init__(self, settings: Reward, others: Grading | None, *, device: str) -> None:
        super().__init__(settings, others, grader=MODEL)
        assert settings.model is not None, "the recipe's check asks for [reward.model]"
        self.device = device
        self._scorer: Scorer | None = None

    def open(self) -> None:
        """Load the model now."""
        assert self.settings.model is not None
        try:
            self._scorer = open_scorer(self.settings.model, device=self.device)
        except (OSError, ValueError) as error:
            raise ValueError(f"reward.model.path: {error}") from error

    @property
    def scorer(self) -> Scorer:
        assert self._scorer is not None, "it is open between `check` and `close`"
        return self._scorer

    def shut(self) -> None:
        self._scorer = None  # frees its memory even if somebody still holds this object

    def working(self) -> AbstractContextManager[Any]:
        return own_stream(self.scorer.model.device)

    def grade(self, jobs: Sequence[GradingJob]) -> None:
        """All waiting jobs in one batch; if that fails one by one, so that one answer does not fail the others."""
        readable: list[tuple[GradingJob, ScoredIds]] = []
        for job in jobs:
            (pair,) = job.pairs
            try:
                readable.append((job, self.scorer.encode(*pair)))
            except Ungradable as reason:
                job.settle([Verdict(status="ungradable", score=0.0, detail=str(reason))])
            except Exception as error:
                self._settle_crash(job, error)
        if not readable:
            return
        try:
            scores = self.scorer.score([ids for _, ids in readable])
        except Exception as error:
            if len(readable) == 1:
                self._settle_crash(readable[0][0], error)
                return
            for job, _ in readable:
                self.grade([job])
            return
        for (job, _), score in zip(readable, scores, strict=True):
            job.settle([to_verdict(score)])

    def _settle_crash(self, job: GradingJob, error: Exception) -> None:
        verdicts, trace = crashed(error)
        self.log_first_failure(trace)
        job.settle([replace(verdicts[0], detail=f"the reward model failed: {in_one_line(error)}")])


def to_verdict(score: float) -> Verdict:
    if not math.isfinite(score):
        return failure(f"the reward model gave {score}, which is no score")
    return Verdict(status="scored", score=score, detail=f"scored {score:.4g} by the reward model")


def own_stream(device: torch.device) -> AbstractContextManager[Any]:
    """A CUDA stream of this thread's own, so that it and the engine do not wait for each other."""
    return torch.cuda.stream(torch.cuda.Stream(device)) if device.type == "cuda" else nullcontext()
