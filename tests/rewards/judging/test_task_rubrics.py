"""The rubrics of tasks: every part has a category, every category has parts."""

from __future__ import annotations

from foresail.rewards.judging.rubric import load_rubric


def test_parts_are_of_the_ten_categories() -> None:
    categories = load_rubric("task").classes
    parts = load_rubric("task_detail").classes
    assert len(categories) == 10 and 70 <= len(parts) <= 80
    assert list(dict.fromkeys(part.partition("/")[0] for part in parts)) == [*categories]
    assert all(part.partition("/")[2] for part in parts)
