"""Rewards are made for a whole group at once, when its last verdict is in."""

from __future__ import annotations

from collections.abc import Sequence

from small_rollouts import FakeJudge, group_spec_of, some_problems, tiny_fleet

from foresail.records import Problem, Sample, Verdict
from foresail.rollout.collect import collect, teaches
from foresail.rollout.controller import Controller


def shortest_right_answer(
    problem: Problem, samples: Sequence[Sample], verdicts: Sequence[Verdict]
) -> tuple[float | None, ...]:
    """Two for the shortest of the right answers, one for the others."""
    lengths = [
        sample.num_response_tokens
        for sample, verdict in zip(samples, verdicts, strict=True)
        if verdict.status == "correct"
    ]
    return tuple(
        verdict.score * (1 + (sample.num_response_tokens == min(lengths)))
        for sample, verdict in zip(samples, verdicts, strict=True)
    )


def test_a_function_over_the_group_says_what_each_sample_gets():
    """Where all are right, only their lengths tell them apart, and that is enough to learn from."""
    collected = collect(
        tiny_fleet(),
        some_problems(40).__getitem__,
        group_spec_of(4),
        FakeJudge(lambda _: ["correct"] * 4),
        controller=Controller(num_groups=4, cap=40),
        usable=teaches,
        rewards_of=shortest_right_answer,
    )
    assert len(collected.chosen) == 4
    for group in collected.chosen:
        assert group.rewards == shortest_right_answer(group.problem, group.samples, group.verdicts)
        assert set(group.rewards) == {1.0, 2.0}
