"""Metrics and log rows of a reinforcement step, under the names that users of verl know.

Scores, lengths and statuses are of everything sampled in the step, filtered groups included: those are the
policy's own rates, and so is `rollout/reward`. `critic/rewards` are of the groups it learned from. Where rewards do
not mark answers right or wrong (terms only, a function that counts something), there is no accuracy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, get_args

from torch import Tensor

from foresail.algorithms.turn_credit import SampleCredit
from foresail.records import FAILURES, Group, Sample, Status, Trajectory, Verdict
from foresail.rewards.tally import one_line
from foresail.rewards.thinking import Thought
from foresail.rollout.collect import Collected, failures, teaches
from foresail.world import ONE_PROCESS, World


def collected_metrics(
    collected: Collected,
    *,
    rollout_seconds: float,
    step_seconds: float,
    useful: Callable[[Group], bool] = teaches,
) -> dict[str, Any]:
    """`step_seconds` are those of rollout and update, as far as one waits for the other; a group is `useful` where
    its samples teach something by being compared.
    """
    samples = [sample for group in collected.launched for sample in group.samples]
    verdicts = [verdict for group in collected.launched for verdict in group.verdicts]
    judged = [verdict for verdict in verdicts if verdict.status not in FAILURES]
    rewards = [reward for group in collected.chosen for reward in group.rewards if reward is not None]
    lengths = [sample.num_response_tokens for sample in samples]
    statuses = Counter(verdict.status for verdict in verdicts)
    tokens = sum(len(record.ids) for sample in samples for record in sample.records)
    ungraded = any(map(is_ungraded, collected.launched))
    unsaid = {"correct", "wrong", "unparsable"} - statuses.keys() if ungraded else {"scored"}
    return {
        **({} if ungraded else {"rollout/accuracy": statuses["correct"] / max(1, len(judged))}),
        **score_metrics(judged),
        **reward_metrics(rewards),
        **term_metrics(judged),
        **group_metrics(collected.launched, useful),
        **verdict_metrics(collected.launched),
        "rollout/groups_launched": len(collected.launched),
        "rollout/groups_used": len(collected.chosen),
        "rollout/groups_failed": sum(group.failed for group in collected.launched),
        "rollout/groups_surplus": collected.num_surplus,
        "rollout/groups_cancelled": collected.num_cancelled,
        "rollout/tokens_per_second": sum(lengths) / rollout_seconds,
        "response_length/mean": fmean(lengths),
        "response_length/max": max(lengths),
        "response_length/min": min(lengths),
        "response_length/clip_ratio": fmean(sample.finish == "length" for sample in samples),
        "perf/throughput": tokens / step_seconds,
        "perf/total_num_tokens": tokens,
        **{
            f"verdict/{status}": statuses[status] / len(verdicts)
            for status in get_args(Status)
            if status not in unsaid
        },
    }


def score_metrics(judged: Sequence[Verdict]) -> dict[str, float]:
    """The main grader's scores; empty where there is none and the reward is a sum of terms."""
    scores = [verdict.score for verdict in judged if verdict.status != "scored" or not verdict.terms]
    return {"critic/score/mean": fmean(scores) if scores else 0.0} if scores or not judged else {}


def reward_metrics(rewards: Sequence[float]) -> dict[str, float]:
    """Rewards that were learned from; empty where there are none."""
    if not rewards:
        return {}
    return {
        "critic/rewards/mean": fmean(rewards),
        "critic/rewards/max": max(rewards),
        "critic/rewards/min": min(rewards),
    }


def term_metrics(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Means of every term's unweighted scores, then of the numbers that functions log, over verdicts that have
    them.
    """
    by_name: dict[str, list[float]] = {}
    for verdict in verdicts:
        for term, score in verdict.terms.items():
            by_name.setdefault(f"reward/{term}/mean", []).append(score)
    terms = set(by_name)
    for verdict in verdicts:
        for name, value in verdict.metrics.items():
            if (key := f"reward/{name}") not in terms:
                by_name.setdefault(key, []).append(value)
    return {name: fmean(values) for name, values in by_name.items()}


def group_metrics(groups: Sequence[Group], teaches: Callable[[Group], bool]) -> dict[str, float]:
    """Shares of the groups launched: some teach something, in some every sample is right, in some none.

    A sample without siblings teaches in other ways than by its group.
    """
    siblings = any(len(group.samples) > 1 for group in groups)
    useful = {"groups/useful": fmean(teaches(group) for group in groups)} if siblings else {}
    if any(map(is_ungraded, groups)):
        return useful
    return {
        **useful,
        "groups/solved": fmean(group.pass_rate == 1 for group in groups),
        "groups/unsolved": fmean(group.pass_rate == 0 and not group.failed for group in groups),
    }


def verdict_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    """Rewards and lengths of what was judged; a length is left out where no answer is right, or none is wrong."""
    metrics: dict[str, Any] = {}
    samples = [
        (sample.num_response_tokens, verdict.status, reward)
        for group in groups
        for sample, verdict, reward in zip(group.samples, group.verdicts, group.rewards, strict=True)
        if reward is not None
    ]
    if samples:
        metrics["rollout/reward"] = fmean(reward for *_, reward in samples)
    kinds: dict[str, tuple[Status, ...]] = {"correct": ("correct",), "wrong": ("wrong", "unparsable")}
    if any(map(is_ungraded, groups)):
        kinds = {}
    for name, statuses in kinds.items():
        if lengths := [length for length, status, _ in samples if status in statuses]:
            metrics[f"response_length/{name}/mean"] = fmean(lengths)
    if failed := failures(groups):
        metrics["rollout/verdicts_failed"] = len(failed)
        metrics["verdict/first_failure"] = one_line(f"{failed[0].status}: {failed[0].detail}")[:200]
    return metrics


def is_ungraded(group: Group) -> bool:
    """Whether some of its responses have rewards that say nothing of right and wrong."""
    return any(verdict.status == "scored" for verdict in group.verdicts)


def advantage_metrics(advantages: Tensor, world: World = ONE_PROCESS) -> dict[str, float]:
    """Over all ranks' advantages; a rank may have none."""
    return {
        "critic/advantages/mean": mean_of(advantages, world),
        "critic/advantages/max": world.max(greatest(advantages)).item(),
        "critic/advantages/min": -world.max(greatest(-advantages)).item(),
    }


def lag_metrics(groups: Sequence[Group], version: int) -> dict[str, float]:
    """How many versions older than the trainer's the weights were that drew a token: mean and maximum."""
    lags = [
        version - drawn
        for group in groups
        for sample in group.samples
        for record in sample.records
        for drawn, mask in zip(record.versions, record.loss_mask, strict=True)
        if mask
    ]
    return {"rollout/version_lag": fmean(lags), "rollout/version_lag_max": max(lags)}


def greatest(values: Tensor) -> Tensor:
    return values.max() if values.numel() else values.new_tensor(-math.inf)


def mean_of(values: Tensor, world: World) -> float:
    return (world.sum(values.sum()) / world.sum(values.numel())).item()


def mean_over_updates(results: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Over the updates that have the metric: some are measured in the first one only."""
    names = {name: [result[name] for result in results if name in result] for name in results[0]}
    return {name: fmean(values) for name, values in names.items()}


def rollout_rows(
    collected: Collected,
    read: Callable[[Sample], Trajectory],
    credits: Sequence[Sequence[SampleCredit]] = (),
    thoughts: Callable[[Sample], Thought] | None = None,
) -> Iterator[dict[str, Any]]:
    """One row per sample, from which it can be read, replayed, and trained on again.

    `credits` are those of the chosen groups, where turns were weighed; `thoughts` describes a sample's thinking.
    """
    used = {id(group) for group in collected.chosen}
    weighed = {
        id(group): credit for group, credit in zip(collected.chosen, credits or [()] * len(used), strict=True)
    }
    for group in collected.launched:
        for number, (sample, verdict, reward) in enumerate(
            zip(group.samples, group.verdicts, group.rewards, strict=True)
        ):
            trajectory = read(sample)
            turns = [vars(turn) for turn in trajectory.turns]
            yield {
                "problem": group.problem.id,
                "sample": number,
                "used": id(group) in used,
                "status": verdict.status,
                "score": verdict.score,
                "reward": reward,
                "detail": verdict.detail,
                **({"terms": dict(verdict.terms)} if verdict.terms else {}),
                **({"extra": dict(verdict.extra)} if verdict.extra else {}),
                "answer": group.problem.answer,
                "prompt": group.problem.prompt[-1].content,
                "response": trajectory.response,
                **({"turns": turns} if len(turns) > 1 or sample.outcome is not None else {}),
                **({"credit": weighed[id(group)][number].to_row()} if weighed.get(id(group)) else {}),
                "finish": sample.finish,
                **({} if group.problem.thinking is None else {"thinking": group.problem.thinking}),
                **({} if thoughts is None else {"thinking_tokens": thoughts(sample).tokens}),
                **({"forced": sample.forced} if sample.forced else {}),
                "ids": sample.ids,
                "loss_mask": sample.loss_mask,
                "logprobs": sample.logprobs,
                "versions": sample.versions,
                **(
                    {"branches": [branch_row(branch, read) for branch in sample.branches]}
                    if sample.branches
                    else {}
                ),
            }


def branch_row(branch: Sample, read: Callable[[Sample], Trajectory]) -> dict[str, Any]:
    """Another record of the same episode."""
    return {
        "turns": [vars(turn) for turn in read(branch).turns],
        "finish": branch.finish,
        "ids": branch.ids,
        "loss_mask": branch.loss_mask,
        "logprobs": branch.logprobs,
        "versions": branch.versions,
    }
