"""Graders by source: each source of problems may have a grader and rewards of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, Sample, Verdict
from foresail.rewards.build import open_grading, open_server
from foresail.rewards.grading import Grading
from foresail.rewards.group_rewards import Rewards, judge_group, judge_sample, reward_group
from foresail.rewards.judge_grading import OpenAnswer
from foresail.rewards.ray_hosts import GraderHosts
from foresail.tokenizer.tokenizer import Tokenizer


@contextmanager
def open_gradings(
    settings: Iterable[Reward],
    prints: Path | None = None,
    hosts: GraderHosts | None = None,
    device: str = "auto",
    open_answer: OpenAnswer = open_server,
) -> Iterator[dict[Reward, Grading]]:
    """One grading for all equal settings; `prints` is the file for what reward functions print."""
    with ExitStack() as opened:
        yield {
            reward: opened.enter_context(
                open_grading(reward, prints=prints, hosts=hosts, device=device, open_answer=open_answer)
            )
            for reward in dict.fromkeys(settings)
        }


@dataclass(frozen=True, kw_only=True)
class RewardsBySource:
    """The reward settings and grading of each source, by `Problem.dataset`."""

    settings: Mapping[str, Reward]
    gradings: Mapping[Reward, Grading]
    tokenizer: Tokenizer

    def judge(self, problem: Problem, sample: Sample) -> Future[Verdict]:
        settings = self.settings[problem.dataset]
        return judge_sample(
            problem, sample, tokenizer=self.tokenizer, settings=settings, grading=self.gradings[settings]
        )

    def judge_group(
        self, problem: Problem, samples: Sequence[Sample], early: Sequence[Future[Verdict]]
    ) -> Sequence[Future[Verdict]]:
        settings = self.settings[problem.dataset]
        return judge_group(
            problem,
            samples,
            early,
            tokenizer=self.tokenizer,
            settings=settings,
            grading=self.gradings[settings],
        )

    def reward(
        self, problem: Problem, samples: Sequence[Sample], verdicts: Sequence[Verdict], *, limit: int
    ) -> Rewards:
        settings = self.settings[problem.dataset]
        return reward_group(
            problem, samples, verdicts, tokenizer=self.tokenizer, settings=settings, limit=limit
        )
