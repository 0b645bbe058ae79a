"""The problems of several sources: their names, ids that clash, prompts that are too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_world import make_tokenizer, write_lines

from foresail.data.mix import Mixture
from foresail.data.mixtures.mixture import describe_dropped, mix_problems
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.prompts import PromptedProblem
from foresail.recipe.tables.parts import Problems

LONG = "7" + " +5" * 20


def rows(*prompts: str, ids: bool = True) -> list[dict[str, object]]:
    given = [{"prompt": prompt, "answer": "1"} for prompt in prompts]
    return [row | {"id": str(number)} for number, row in enumerate(given)] if ids else list(given)


def load(*sources: Problems, most: int = 12) -> Mixture[PromptedProblem]:
    return mix_problems(sources, Reader(make_tokenizer()), most)


def test_sources_come_one_after_the_other_with_their_names(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", rows("7 +5", "7 -5", ids=False))
    found = load(Problems(source=str(tmp_path / "a.jsonl")), Problems(source="arithmetic:count=2,steps=2"))
    names = [(entry.problem.id, entry.problem.dataset, entry.problem.source) for entry in found.entries[:2]]
    assert names == [("a:0", "a", "a"), ("a:1", "a", "a")] and found.dropped == {}
    assert [entry.problem.dataset for entry in found.entries[2:]] == ["arithmetic"] * 2


def test_a_name_names_rows_without_ids_and_leaves_the_data_s_own_source(tmp_path: Path) -> None:
    """verl's reward functions are called with data_source as the file has it."""
    write_lines(tmp_path / "train.jsonl", [{**rows("7 +5")[0], "data_source": "openai/gsm8k"}])
    (entry,) = load(Problems(source=str(tmp_path / "train.jsonl"), name="words")).entries
    assert (entry.problem.dataset, entry.problem.source) == ("words", "openai/gsm8k")
    write_lines(tmp_path / "train.jsonl", rows("7 +5", ids=False))
    (entry,) = load(Problems(source=str(tmp_path / "train.jsonl"), name="words")).entries
    assert (entry.problem.id, entry.problem.source) == ("words:0", "words")


def test_ids_that_clash_get_their_source_s_name(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", rows("7 +5", "7 -5"))
    write_lines(tmp_path / "b.jsonl", rows("7 +5"))
    found = load(*(Problems(source=str(tmp_path / f"{name}.jsonl")) for name in "ab"))
    assert [entry.problem.id for entry in found.entries] == ["a:0", "1", "b:0"]


def test_long_prompts_are_refused_or_dropped_as_each_source_says(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", rows("7 +5", LONG, "7 -5"))
    with pytest.raises(
        ValueError,
        match=r"a.jsonl: 1 of 3 prompts are longer than max_prompt_tokens 12, .*data.too_long = \"drop\"",
    ):
        load(Problems(source=str(file)))
    found = load(Problems(source=str(file), too_long="drop"), Problems(source="arithmetic:count=2,steps=2"))
    assert [entry.problem.id for entry in found.entries[:2]] == ["0", "2"] and found.dropped == {"a": 1}
    assert describe_dropped(found.dropped, "max_prompt_tokens 12") == (
        "dropped as longer than max_prompt_tokens 12: 1 of a"
    )
    write_lines(tmp_path / "a.jsonl", rows(LONG))
    with pytest.raises(
        ValueError, match=r"a.jsonl: 1 of 1 prompts are longer .* raise max_prompt_tokens to \d+ if .* it$"
    ):
        load(Problems(source=str(file), too_long="drop"))
