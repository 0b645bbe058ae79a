"""A rollout that waits in a checkpoint comes back as it was."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.records import Group, Problem, Sample, Verdict
from foresail.rollout.collect import Collected
from foresail.train.rollouts.result import RolloutResult, find_rollout_result, to_json, write_rollout_result

PROBLEMS = {
    name: Problem(id=name, prompt=(), answer="4", extra={"raw": b"\x00"}) for name in ("a", "b", "7:c")
}
NUMBERS = st.one_of(st.floats(allow_nan=False), st.integers(-(2**70), 2**70))
TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)  # half of a pair of surrogates too


@st.composite
def samples(draw: st.DrawFn, deep: bool = True) -> Sample:
    length = draw(st.integers(1, 4))

    def row(numbers: st.SearchStrategy) -> list:
        return draw(st.lists(numbers, min_size=length, max_size=length))

    return Sample(
        ids=row(st.integers(0, 200_000)),
        loss_mask=row(st.integers(0, 1)),
        logprobs=row(st.floats(allow_nan=False)),
        versions=row(st.integers(0, 9)),
        turns=row(st.integers(0, 3)),
        finish=draw(st.sampled_from(["stop", "length"])),
        side={"experts": row(st.lists(st.integers(-1, 7), max_size=2))} if draw(st.booleans()) else {},
        turn_rewards=tuple(draw(st.lists(st.none() | NUMBERS, max_size=2))),
        branches=tuple(draw(st.lists(samples(deep=False), max_size=1))) if deep else (),
        outcome=draw(st.none() | TEXTS),
    )


VERDICTS = st.builds(
    Verdict,
    status=st.sampled_from(["correct", "wrong", "crashed"]),
    score=NUMBERS,
    detail=TEXTS,
    terms=st.dictionaries(TEXTS, NUMBERS, max_size=2),
    extra=st.dictionaries(TEXTS, st.one_of(st.none(), NUMBERS, TEXTS), max_size=2),
    metrics=st.dictionaries(TEXTS, NUMBERS, max_size=2),
)
GROUPS = st.builds(
    Group,
    problem=st.sampled_from([*PROBLEMS.values()]),
    samples=st.lists(samples(), max_size=2).map(tuple),
    verdicts=st.lists(VERDICTS, max_size=2).map(tuple),
    rewards=st.lists(st.none() | NUMBERS, max_size=2).map(tuple),
)


@settings(max_examples=30)
@given(groups=st.lists(GROUPS, max_size=3), chosen=st.sets(st.integers(0, 2)), share=st.floats(0, 1))
def test_it_comes_back_as_it_was(
    tmp_path_factory, groups: list[Group], chosen: set[int], share: float
) -> None:
    path: Path = tmp_path_factory.getbasetemp()
    (path / "trainer").mkdir(exist_ok=True)
    launched = tuple(groups)
    rolled = RolloutResult(
        collected=Collected(
            launched=launched,
            chosen=tuple(group for place, group in enumerate(launched) if place in chosen),
            num_surplus=2,
            num_cancelled=1,
            share=share,
        ),
        changes={"step": 3, "places": {"7/1": 4}, "rates": {"a": [0.1, share]}, "easy": ["b"]},
        figures={"rollout/drafted_steps": share},
        events=[{"what": "dispatch", "start": 1.25, "end": 1.25, "request": "3.1"}],
        start=1700000000.123456,
        end=1700000001.654321,
    )
    write_rollout_result(path, rolled)
    found = find_rollout_result(path, PROBLEMS)
    assert found is not None and repr(found) == repr(rolled)  # 1 is not 1.0 in a log
    ours = [id(group) for group in found.collected.launched]
    assert {id(group) for group in found.collected.chosen} <= {*ours}, (
        "a chosen group is one that was launched"
    )


def test_what_is_not_finite_stays(tmp_path: Path) -> None:
    verdict = Verdict(status="scored", score=math.nan, terms={"x": -math.inf})
    group = Group(problem=PROBLEMS["a"], samples=(), verdicts=(verdict,), rewards=(math.nan,))
    collected = Collected(launched=(group,), chosen=())
    rolled = RolloutResult(collected=collected, changes={}, figures={}, events=[], start=0.0, end=1.0)
    (tmp_path / "trainer").mkdir()
    assert find_rollout_result(tmp_path, PROBLEMS) is None
    write_rollout_result(tmp_path, rolled)
    assert repr(find_rollout_result(tmp_path, PROBLEMS)) == repr(rolled)


def test_rows_of_numpy_are_read_back_as_lists() -> None:
    """As an engine hands experts out."""
    rows = [np.array([3, -1], np.int16), None]
    assert json.loads(json.dumps(rows, default=to_json)) == [[3, -1], None]
