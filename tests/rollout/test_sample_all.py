"""Validation: the groups of all problems through the loop of a training step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_rollouts import (
    STOPS,
    FakeJudge,
    LateVerdict,
    fleet_of,
    group_spec_of,
    names,
    some_problems,
    tiny_engine,
    tiny_fleet,
)

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.recipe.tables.parts import Sampling
from foresail.records import FAILURES, Group, Problem, Sample, Status, Verdict
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.policies import FixedOrder
from foresail.rollout.stream import sample_all

GREEDY = Sampling(max_new_tokens=12, temperature=0.0)


def right(problem: Problem, sample: Sample) -> LateVerdict:
    return LateVerdict(lambda: Verdict(status="correct", score=1.0))


def longest(group: Group) -> int:
    return max(sample.num_response_tokens for sample in group.samples)


def drawn_ids(
    problems: list[PromptedProblem], group_spec: GroupSpec, fleet: Fleet | None = None
) -> dict[str, list[list[int]]]:
    groups = sample_all(fleet or tiny_fleet(), problems, group_spec, right)
    return {group.problem.id: [sample.ids for sample in group.samples] for group in groups}


def test_every_problem_comes_once_with_all_its_samples():
    problems = some_problems(9)
    drawn = drawn_ids(problems, group_spec_of(5), tiny_fleet(max_running=7))
    assert sorted(drawn) == sorted(entry.problem.id for entry in problems)
    for entry in problems:
        assert [tuple(ids[: len(entry.ids)]) for ids in drawn[entry.problem.id]] == [entry.ids] * 5


def test_an_interrupt_in_the_middle_of_anything_is_what_comes_out(monkeypatch: pytest.MonkeyPatch):
    """Not an error from putting in order what it left half done."""
    remove = FixedOrder._remove

    def interrupted(order: FixedOrder, name: str) -> None:
        remove(order, name)
        raise KeyboardInterrupt

    monkeypatch.setattr(FixedOrder, "_remove", interrupted)
    engine = tiny_engine(max_running=2)
    fleet = fleet_of(engine, policy="group")
    with pytest.raises(KeyboardInterrupt):
        drawn_ids(some_problems(6), group_spec_of(4), fleet)


def test_samples_are_flat_records():
    fleet, problems = tiny_fleet(), some_problems(6)
    fleet.update_weights(4)
    prompts = {entry.problem.id: entry.ids for entry in problems}
    for group in sample_all(fleet, problems, group_spec_of(4), right):
        for sample in group.samples:
            prompt = len(prompts[group.problem.id])
            response = len(sample.ids) - prompt
            assert sample.loss_mask == [0] * prompt + [1] * response
            assert sample.versions == [0] * prompt + [4] * response
            assert sample.turns == [0] * (prompt + response)
            assert sample.logprobs[:prompt] == [0.0] * prompt
            assert len(sample.logprobs) == len(sample.ids) and all(p < 0 for p in sample.logprobs[prompt:])
            assert sample.num_response_tokens == response
            stopped = sample.ids[-1] in STOPS
            assert sample.finish == ("stop" if stopped else "length")
            assert stopped or response == 12
            assert not set(STOPS) & set(sample.ids[prompt:-1])


@pytest.mark.parametrize(
    "options", [{}, {"max_running": 3}, {"num_pages": 20}], ids=["room", "rows", "divided"]
)
def test_each_sample_stands_at_its_own_number(options):
    """Sample n is what its own noise key gives when it is drawn alone; what is drawn besides comes last."""
    problems, group_spec = some_problems(3), group_spec_of(4, seed=3, step=8, besides=(GREEDY,))
    drawn = drawn_ids(problems, group_spec, tiny_fleet(**options))
    for entry in problems:
        for number, sampling in enumerate([group_spec.sampling] * 4 + [GREEDY]):
            request = Request(
                id="alone",
                prompt=entry.ids,
                key=noise_key(3, 8, entry.problem.id, number),
                sampling=sampling,
                stop_ids=group_spec.stop_ids,
            )
            (alone,) = tiny_engine().generate([request])
            assert drawn[entry.problem.id][number] == [*entry.ids, *alone.ids]


def test_another_step_or_seed_draws_other_samples_but_the_same_greedy_one():
    problems, group_spec = some_problems(2), group_spec_of(4, besides=(GREEDY,))
    drawn = drawn_ids(problems, group_spec)
    assert drawn == drawn_ids(problems, group_spec)
    for other in (replace(group_spec, step=2), replace(group_spec, seed=1)):
        for name, ids in drawn_ids(problems, other).items():
            assert ids[:-1] != drawn[name][:-1] and ids[-1] == drawn[name][-1]


# All at once.


def test_groups_come_as_they_end_not_as_they_were_asked():
    groups = [*sample_all(tiny_fleet(), some_problems(8), group_spec_of(3), right)]
    assert [longest(group) for group in groups] == sorted(map(longest, groups))
    assert names(tuple(groups)) != [f"p{n}" for n in range(8)]


def test_greedy_and_drawn_samples_of_all_problems_run_side_by_side(monkeypatch: pytest.MonkeyPatch):
    """With a row for each, there are as many decode steps as the longest of all has tokens."""
    engine, steps = tiny_engine(), []
    step = engine.step
    monkeypatch.setattr(engine, "step", lambda: steps.append(len(engine.slots)) or step())
    fleet = fleet_of(engine)
    groups = [*sample_all(fleet, some_problems(8), group_spec_of(3, besides=(GREEDY,)), right)]
    assert len(steps) == max(map(longest, groups)) > 1
    assert max(steps) > 3 * 8


def test_verdicts_are_awaited_beside_the_drawing_not_between():
    """No verdict is there before the last sample of the last group is handed over."""
    handed: list[str] = []

    def judge(problem: Problem, sample: Sample) -> LateVerdict:
        handed.append(problem.id)
        return LateVerdict(lambda: Verdict(status="wrong", score=0.0), ready=lambda: len(handed) == 20)

    groups = [*sample_all(tiny_fleet(max_running=2), some_problems(5), group_spec_of(4), judge)]
    assert len(groups) == 5


# What goes wrong.


def test_failed_verdicts_lose_neither_their_group_nor_another():
    statuses: list[Status] = ["timeout", "correct", "crashed", "ungradable"]
    judge = FakeJudge(lambda name: statuses if name in ("p1", "p2") else ["correct"] * 4)
    groups = {
        group.problem.id: group
        for group in sample_all(tiny_fleet(), some_problems(4), group_spec_of(4), judge)
    }
    assert sorted(groups) == ["p0", "p1", "p2", "p3"]
    for name, group in groups.items():
        assert group.failed == (name in ("p1", "p2"))
        assert [reward is None for reward in group.rewards] == [v.status in FAILURES for v in group.verdicts]


def test_a_judge_that_breaks_leaves_no_samples_behind():
    """Nor does a listener who goes away; the next caller finds an empty engine."""
    engine, problems = tiny_engine(), some_problems(8)
    fleet = fleet_of(engine)

    def broken(problem: Problem, sample: Sample) -> LateVerdict:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        next(sample_all(fleet, problems, group_spec_of(3), broken))
    assert not fleet.busy and not engine.busy
    for _ in sample_all(fleet, problems, group_spec_of(3), right):
        assert fleet.busy
        break
    assert not fleet.busy and not engine.busy
    assert len([*sample_all(fleet, problems[:2], group_spec_of(3), right)]) == 2
