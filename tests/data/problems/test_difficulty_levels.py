"""Levels from pass rates, and how problems come by them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_world import write_lines

from foresail.data.problems.difficulty import find_levels
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems

rates = st.lists(st.none() | st.sampled_from([n / 8 for n in range(9)]), max_size=60)


def test_different_rates_make_five_equal_levels():
    spread = [1 - n / 101 for n in range(1, 101)]
    assert find_levels(spread) == [1 + n // 20 for n in range(100)]
    assert find_levels([1.0, 0.8, 0.6, 0.4, 0.0]) == [1, 2, 3, 4, 5]


def test_equals_share_the_level_of_their_middle():
    # a fifth each but for the 40 equal ones, which reach from the 20th to the 60th percentile
    levels = find_levels([0.9] * 20 + [0.5] * 40 + [0.2] * 20 + [0.1] * 20)
    assert Counter(levels) == {1: 20, 3: 40, 4: 20, 5: 20}
    assert find_levels([0.5] * 7) == [3] * 7


def test_always_and_never_solved_are_the_ends_however_many():
    assert find_levels([1.0] * 9 + [0.5]) == [1] * 9 + [5]
    assert find_levels([0.0] * 9 + [0.5]) == [5] * 9 + [1]
    assert find_levels([0.0] * 3) == [5] * 3 and find_levels([1.0] * 3) == [1] * 3


@given(rates)
def test_harder_problems_never_have_lower_levels(rates):
    levels = find_levels(rates)
    known = [(rate, level) for rate, level in zip(rates, levels, strict=True) if rate is not None]
    assert all(level in range(1, 6) for _, level in known)
    for rate, level in known:
        assert all(other_level >= level for other, other_level in known if other <= rate)
    assert [level is None for level in levels] == [rate is None for rate in rates]


# How problems come by them.


def rows(*levels: object) -> list[dict[str, object]]:
    return [
        {"id": f"p{n}", "prompt": "2+2?", "answer": "4", "level": level} for n, level in enumerate(levels)
    ]


def test_a_column_of_levels_is_read_in_its_usual_spellings(tmp_path: Path):
    data = write_lines(tmp_path / "data.jsonl", rows(1, "2", "Level 3", 4.0, None))
    problems = load_problems(Problems(source=str(data), difficulty_key="level"))
    assert [problem.level for problem in problems] == [1, 2, 3, 4, None]
    assert [problem.level for problem in load_problems(Problems(source=str(data)))] == [None] * 5


@pytest.mark.parametrize("level", [0, 6, "hard", 2.5, True])
def test_other_values_are_refused_with_their_problem(tmp_path: Path, level: object):
    data = write_lines(tmp_path / "data.jsonl", rows(1, level))
    with pytest.raises(ValueError, match=r"problem p1, column level: .* from 1 \(easy\) to 5 \(hard\)"):
        load_problems(Problems(source=str(data), difficulty_key="level"))


def test_a_file_of_levels_is_joined_by_id(tmp_path: Path):
    data = write_lines(tmp_path / "data.jsonl", rows(*[None] * 3))
    levels = write_lines(
        tmp_path / "levels.jsonl",
        [{"id": "p2", "level": 5}, {"id": "p0", "level": 1}, {"id": "other", "level": 2}],
    )
    problems = load_problems(Problems(source=str(data), difficulty=str(levels)))
    assert [problem.level for problem in problems] == [1, None, 5]
    first = load_problems(Problems(source="arithmetic:count=2,steps=2"))[0].id
    write_lines(levels, [{"id": first, "level": 4}])
    generated = load_problems(Problems(source="arithmetic:count=2,steps=2", difficulty=str(levels)))
    assert [problem.level for problem in generated] == [4, None]


def test_levels_of_other_problems_or_no_levels_at_all_are_refused(tmp_path: Path):
    data = write_lines(tmp_path / "data.jsonl", rows(1, 2))
    levels = write_lines(tmp_path / "levels.jsonl", [{"id": "gsm8k:1", "level": 5}])
    with pytest.raises(ValueError, match=r"none of them is in the data: it has 'gsm8k:1', the data 'p0'"):
        load_problems(Problems(source=str(data), difficulty=str(levels)))
    write_lines(levels, [{"id": "p0", "level": 1}, {"id": "p1"}])
    with pytest.raises(ValueError, match=r"levels.jsonl:2 does not have a problem's level; .* id and level"):
        load_problems(Problems(source=str(data), difficulty=str(levels)))
    with pytest.raises(ValueError, match="name a file in it, like"):
        load_problems(Problems(source=str(data), difficulty=str(tmp_path)))
