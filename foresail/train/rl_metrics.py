"""What a reinforcement step leaves in the log, under the names users of verl know.

Scores, lengths and statuses are of everything drawn in the step, filtered groups included: those are the
policy's own rates. Rewards are of the groups it learned from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, get_args

from torch import Tensor

from foresail.records import FAILURES, Group, Sample, Status
from foresail.rewards.tally import one_line
from foresail.rollout.collect import Harvest, failures
from foresail.rollout.controller import outcome_of


def describe_harvest(harvest: Harvest, seconds: Mapping[str, float]) -> dict[str, Any]:
    samples = [sample for group in harvest.launched for sample in group.samples]
    verdicts = [verdict for group in harvest.launched for verdict in group.verdicts]
    judged = [verdict for verdict in verdicts if verdict.status not in FAILURES]
    rewards = [reward for group in harvest.chosen for reward in group.rewards if reward is not None]
    lengths = [sample.num_response_tokens for sample in samples]
    statuses = Counter(verdict.status for verdict in verdicts)
    tokens = sum(len(sample.ids) for sample in samples)
    return {
        "critic/score/mean": fmean(verdict.score for verdict in judged) if judged else 0.0,
        "critic/rewards/mean": fmean(rewards),
        "critic/rewards/max": max(rewards),
        "critic/rewards/min": min(rewards),
        "rollout/accuracy": statuses["correct"] / max(1, len(judged)),
        **describe_groups(harvest.launched),
        **describe_verdicts(harvest.launched),
        "rollout/groups_launched": len(harvest.launched),
        "rollout/groups_used": len(harvest.chosen),
        "rollout/groups_failed": sum(group.failed for group in harvest.launched),
        "rollout/groups_surplus": harvest.num_surplus,
        "rollout/groups_cancelled": harvest.num_cancelled,
        "rollout/tokens_per_second": sum(lengths) / seconds["rollout"],
        "response_length/mean": fmean(lengths),
        "response_length/max": max(lengths),
        "response_length/min": min(lengths),
        "response_length/clip_ratio": fmean(sample.finish == "length" for sample in samples),
        "perf/throughput": tokens / sum(seconds.values()),
        "perf/total_num_tokens": tokens,
        **{f"verdict/{status}": statuses[status] / len(verdicts) for status in get_args(Status)},
    }


def describe_groups(groups: Sequence[Group]) -> dict[str, float]:
    """Shares of the groups drawn: some teach something, in some every sample is right, in some none.

    A sample without siblings teaches in other ways than by its group.
    """
    siblings = any(len(group.samples) > 1 for group in groups)
    useful = {"groups/useful": fmean(outcome_of(group).valid for group in groups)} if siblings else {}
    return {
        **useful,
        "groups/solved": fmean(group.pass_rate == 1 for group in groups),
        "groups/unsolved": fmean(group.pass_rate == 0 and not group.failed for group in groups),
    }


def describe_verdicts(groups: Sequence[Group]) -> dict[str, Any]:
    """Rewards and lengths of what was judged; a length is left out where no answer is right, or none is wrong."""
    found: dict[str, Any] = {}
    samples = [
        (sample.num_response_tokens, verdict.status == "correct", reward)
        for group in groups
        for sample, verdict, reward in zip(group.samples, group.verdicts, group.rewards, strict=True)
        if reward is not None
    ]
    if samples:
        found["rollout/reward"] = fmean(reward for *_, reward in samples)
    for name, wanted in (("correct", True), ("wrong", False)):
        if lengths := [length for length, right, _ in samples if right == wanted]:
            found[f"response_length/{name}/mean"] = fmean(lengths)
    if failed := failures(groups):
        found["verdict/first_failure"] = one_line(f"{failed[0].status}: {failed[0].detail}")[:200]
    return found


def describe_advantages(advantages: Tensor) -> dict[str, float]:
    return {
        f"critic/advantages/{name}": getattr(advantages, name)().item() for name in ("mean", "max", "min")
    }


def mean_over_updates(results: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of those updates that have the metric: some are measured in the first one only."""
    names = {name: [result[name] for result in results if name in result] for name in results[0]}
    return {name: fmean(values) for name, values in names.items()}


def rollout_rows(harvest: Harvest, text_of: Callable[[Sample], str]) -> Iterator[dict[str, Any]]:
    """One row per sample, with what is needed to read it, to replay it, and to train on it again."""
    used = {id(group) for group in harvest.chosen}
    for group in harvest.launched:
        for number, (sample, verdict, reward) in enumerate(
            zip(group.samples, group.verdicts, group.rewards, strict=True)
        ):
            yield {
                "problem": group.problem.id,
                "sample": number,
                "used": id(group) in used,
                "status": verdict.status,
                "score": verdict.score,
                "reward": reward,
                "detail": verdict.detail,
                "answer": group.problem.answer,
                "prompt": group.problem.prompt[-1].content,
                "response": text_of(sample),
                "finish": sample.finish,
                "ids": sample.ids,
                "loss_mask": sample.loss_mask,
                "logprobs": sample.logprobs,
                "versions": sample.versions,
            }
