"""What a step's groups leave for the next step's selection."""

from __future__ import annotations

from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.pass_window import PassWindow
from foresail.data.selection.selection import Selection
from foresail.records import FAILURES, Group, Problem, Status, Verdict


def graded(name: str, *statuses: Status, rewards: tuple[float | None, ...] = ()) -> Group:
    return Group(
        problem=Problem(id=name, prompt=(), answer=""),
        samples=(),
        verdicts=tuple(Verdict(status=status, score=float(status == "correct")) for status in statuses),
        rewards=rewards
        or tuple(None if status in FAILURES else float(status == "correct") for status in statuses),
    )


def selection(*easy: str) -> Selection:
    window = PassWindow(low=0.1, high=0.9, visits=2, chance=0.0, rates={"a": [0.5]})
    return Selection(position=0, pool=EasyPool(alpha=0.1, problems=easy), window=window, strata={}, places={})


def changed(before: Selection, *groups: Group) -> dict[str, object]:
    launch_order = before.launch_order([group.problem.id for group in groups], seed=0, step=1)
    return before.after(launch_order, groups)


def test_ungraded_problems_stay_where_they_were() -> None:
    after = changed(selection("a"), graded("a", "crashed", "wrong"), graded("b", "timeout", "correct"))
    assert after["easy"] == ["a"] and after["rates"] == {"a": [0.5]}


def test_shaped_rewards_do_not_keep_a_solved_problem_out() -> None:
    after = changed(selection(), graded("a", "correct", "correct", rewards=(1.0, 0.4)), graded("b", "wrong"))
    assert after["easy"] == ["a"] and after["rates"] == {"a": [0.5, 1.0], "b": [0.0]}
