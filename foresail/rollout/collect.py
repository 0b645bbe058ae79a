"""Collects the groups of one training step; groups without a learning signal are replaced.

A sample goes to the judge when it ends, while the engines continue with the others. A group whose rewards are all
equal gives no gradient, so the controller launches another. The step ends with the first launches, in order, that
have enough usable groups. So the result depends on launch order, not on which answer or verdict came first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from foresail.algorithms.advantages import has_spread
from foresail.data.problems.prompts import PromptedProblem
from foresail.records import FAILURES, Group, RunStopped, Verdict
from foresail.rewards.group_rewards import right_or_wrong
from foresail.rollout.controller import Controller, StepEnd
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.stream import (
    GroupJudge,
    Judge,
    RewardsOf,
    Stream,
    StreamKind,
    keep_verdicts,
    sleep_briefly,
)


@dataclass(frozen=True, kw_only=True)
class Collected:
    """All groups up to the one that ended the step, and those to learn from, both in launch order.

    Which later groups were running depends on the machine, so they are only counted.
    """

    launched: tuple[Group, ...]
    chosen: tuple[Group, ...]
    num_surplus: int = field(default=0, compare=False)  # usable groups after the step's end
    num_cancelled: int = field(default=0, compare=False)
    share: float = field(default=1.0, compare=False)  # of usable groups, to plan the next step's launches

    @property
    def solved(self) -> bool:
        """Whether every sample of every group is right."""
        return bool(self.launched) and all(group.pass_rate == 1 for group in self.launched)


class NoSignal(RunStopped):
    """No group of the step had two different rewards; `collected` has all groups, for the log."""

    def __init__(self, message: str, collected: Collected) -> None:
        super().__init__(message)
        self.collected = collected


def collect(
    fleet: Fleet,
    problem_of: Callable[[int], PromptedProblem],
    group_spec: GroupSpec,
    judge: Judge,
    *,
    controller: Controller,
    usable: Callable[[Group], bool],
    judge_group: GroupJudge = keep_verdicts,
    rewards_of: RewardsOf = right_or_wrong,
    wait: Callable[[], None] = sleep_briefly,
    stream: StreamKind = Stream,
) -> Collected:
    """Generate and judge until the controller has enough `usable` groups; raises NoSignal if there is none.

    `problem_of` maps the number of a launch to its problem; `wait` sleeps while nothing can be done. `stream` is
    the kind of stream: `Stream`, or a `CarryingStream` that keeps unfinished samples for the next step.
    """
    groups = stream(
        fleet=fleet,
        problem_of=problem_of,
        group_spec=group_spec,
        judge=judge,
        judge_group=judge_group,
        rewards_of=rewards_of,
        controller=controller,
        usable=usable,
        wait=wait,
    )
    collected = to_collected(dict(groups), controller.closing())
    if not collected.chosen and not collected.solved:
        raise NoSignal(explain(collected.launched, group_spec.num_samples), collected)
    return collected


def to_collected(groups: Mapping[int, Group], closing: StepEnd | None) -> Collected:
    assert closing is not None, "a stream ends with its step"
    return Collected(
        launched=tuple(groups[number] for number in closing.prefix),
        chosen=tuple(groups[number] for number in closing.chosen),
        num_surplus=len(closing.surplus),
        num_cancelled=len(closing.cancelled),
        share=closing.share,
    )


def gradable(group: Group) -> bool:
    return not group.failed


def teaches(group: Group) -> bool:
    """Whether rewards differ and no verdict failed: [1, 0, 1] teaches, [1, 1, 1] does not."""
    return not group.failed and has_spread([reward for reward in group.rewards if reward is not None])


def explain(groups: Sequence[Group], num_samples: int) -> str:
    """Why the step has no signal, with the pass rates and advice."""
    if groups and len(failures(groups)) == len(groups) * num_samples:
        return f"every verdict of the step failed: {describe_failures(groups)}. Correct the grader or the problems"
    failed, rates = sum(group.failed for group in groups), describe_rates(groups, num_samples)
    return (
        f"nothing to learn from {len(groups)} groups of {num_samples} samples: all rewards were equal "
        f"within {len(groups) - failed} of them, and {failed} could not be graded. {rates}"
        f"Verdicts: {count_statuses(groups)}{first_failure(groups)}. {advise(groups)}; to try more prompts per "
        "step raise dynamic_sampling.max_rounds"
    )


def describe_rates(groups: Sequence[Group], num_samples: int) -> str:
    """describe_rates(…, 4) -> "Pass rates: 0/4 right: 7 prompts. "; "" for rewards without right or wrong."""
    if any(verdict.status == "scored" for group in groups for verdict in group.verdicts):
        return ""
    rates = Counter(round(group.pass_rate * num_samples) for group in groups)
    counts = ", ".join(f"{right}/{num_samples} right: {rates[right]} prompts" for right in sorted(rates))
    return f"Pass rates: {counts}. "


def advise(groups: Sequence[Group]) -> str:
    """Advice by the most common status."""
    statuses = Counter(verdict.status for group in groups for verdict in group.verdicts)
    samples = [sample for group in groups for sample in group.samples]
    most_common, _ = statuses.most_common(1)[0]
    if sum(sample.finish == "length" for sample in samples) > len(samples) / 2:
        return "Most responses were cut at the limit: raise sampling.max_new_tokens"
    if most_common == "unparsable":
        return (
            "Most responses have no answer that the grader finds: say in data.suffix how to give it, or set "
            'reward.accept = "any"'
        )
    if most_common == "scored":
        return "Look at RUN/rollouts whether the reward tells the samples of a prompt apart"
    if most_common == "correct":
        return "Bring harder problems"
    return (
        "Bring easier problems or a better starting model, raise samples_per_prompt, and look at RUN/rollouts "
        "whether the grader is right"
    )


def failures(groups: Sequence[Group]) -> list[Verdict]:
    return [verdict for group in groups for verdict in group.verdicts if verdict.status in FAILURES]


def describe_failures(groups: Sequence[Group]) -> str:
    """describe_failures(…) -> "40 of 48 (crashed 40, wrong 8); the first: crashed: KeyError: 'x' (a.py:3)"."""
    failed = failures(groups)
    total = sum(len(group.verdicts) for group in groups)
    return f"{len(failed)} of {total} ({count_statuses(groups)}){first_failure(groups)}"


def first_failure(groups: Sequence[Group]) -> str:
    """first_failure(…) -> "; the first: crashed: KeyError: 'x' (a.py:3)"; "" where nothing failed."""
    failed = failures(groups)
    return f"; the first: {failed[0].status}: {failed[0].detail}" if failed else ""


def count_statuses(groups: Sequence[Group]) -> str:
    """count_statuses(…) -> "wrong 14, correct 5"."""
    statuses = Counter(verdict.status for group in groups for verdict in group.verdicts)
    return ", ".join(f"{status} {count}" for status, count in statuses.most_common())
