"""Rejection sampling: right solutions of a checkpoint, as SFT reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_world import MAX_NEW, PROBLEMS, write_lines

from foresail.curate.lineage.trace import trace
from foresail.data.chats.conversations import load_chats, load_conversations
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.recorded_samples import SamplingCost, no_announcement
from foresail.evaluation.solutions import (
    Choice,
    SolvedProblem,
    choose_solutions,
    describe_solutions,
    first_of_each,
    sample_solutions,
)
from foresail.maths.verdict import grade
from foresail.recipe.tables.parts import Problems, Sampling
from foresail.records import Message, Problem

SETTINGS = Problems(source=PROBLEMS, limit=40)


def test_right_solutions_are_written_once_and_a_stop_changes_nothing(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    def sample(folder: Path, most: int = 2, announce: Any = no_announcement) -> dict[str, int]:
        choice = Choice(per_problem=most)
        sampling = Sampling(max_new_tokens=MAX_NEW)
        return sample_solutions(
            tiny_checkpoint,
            SETTINGS,
            sampling,
            num_samples=8,
            choice=choice,
            output=folder,
            device="cpu",
            announce=announce,
        ).counts

    counts = sample(tmp_path / "whole")
    written = (tmp_path / "whole/solutions.jsonl").read_text()
    rows = [json.loads(line) for line in written.splitlines()]
    answers = {problem.id: problem.answer for problem in load_problems(SETTINGS)}
    assert len(rows) == counts["kept"] > 5 and counts["samples"] == 8 * 40
    assert all(grade(row["messages"][-1]["content"], answers[row["problem"]]).score == 1 for row in rows)
    texts = [(row["problem"], row["messages"][-1]["content"]) for row in rows]
    assert len({*texts}) == len(texts)
    assert counts["right"] == counts["kept"] + counts["cut"] + counts["duplicates"] + counts["over"]
    chats = load_conversations(str(tmp_path / "whole/solutions.jsonl"))
    assert [chat[-1].content for chat in chats] == [text for _, text in texts]

    costs: list[SamplingCost] = []

    def stop(cost: SamplingCost) -> None:
        costs.append(cost)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path / "cost", announce=stop)
    assert (costs[0].problems, costs[0].samples, costs[0].new_tokens) == (40, 320, 320 * MAX_NEW)
    assert costs[0].prompt_tokens > 40 and not (tmp_path / "cost/sampled.jsonl").exists()

    lines = (tmp_path / "whole/sampled.jsonl").read_bytes().splitlines(keepends=True)
    part = tmp_path / "part"
    part.mkdir()
    (part / "settings.json").write_bytes((tmp_path / "whole/settings.json").read_bytes())
    (part / "sampled.jsonl").write_bytes(b"".join(lines[:33]) + lines[33][:20])  # killed while writing
    assert sample(part) == counts and (part / "solutions.jsonl").read_text() == written
    assert sample(part, most=1)["kept"] == 40 - counts["unsolved"], "nothing is sampled again for another cap"


@given(
    st.lists(st.lists(st.sampled_from(["a", "a ", " a", "b", "c", ""]), max_size=6), max_size=5),
    st.integers(1, 3),
)
def test_what_is_kept_and_left_out_adds_up(solutions: list[list[str]], most: int) -> None:
    found = choose_solutions(
        [solved(number, texts) for number, texts in enumerate(solutions)], 6, Choice(per_problem=most)
    )
    counts = found.counts
    assert counts.get("right", 0) == sum(counts.get(name, 0) for name in ("kept", "duplicates", "over"))
    for number, texts in enumerate(solutions):
        kept = [row["messages"][-1]["content"] for row in found.rows if row["problem"] == str(number)]
        assert kept == [*first_of_each(texts)][:most]
        assert len({text.strip() for text in kept}) == len(kept) and all(text.strip() for text in kept)
    assert describe_solutions(choose_solutions([solved(0, ["a"])], 6, Choice(per_problem=most)))


def test_a_solution_is_read_back_with_its_problem_and_without_a_loss_on_the_prompt(tmp_path: Path) -> None:
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    prompt = (
        Message(role="user", content="1+1?"),
        Message(role="assistant", content="", extra={"tool_calls": [call]}),
        Message(role="tool", content="2", extra={"name": "add"}),
    )
    entry = PromptedProblem(problem=Problem(id="sums:7", prompt=prompt, answer="2"), ids=[1])
    rows = choose_solutions([(entry, solved(7, ["2"])[1])], 6, Choice(per_problem=1)).rows
    (chat,) = load_chats(write_lines(tmp_path / "solutions.jsonl", rows))
    assert chat.id == "7" and [message.train for message in chat.messages] == [None, False, None, None]
    assert [replace(message, train=None) for message in chat.messages[:-1]] == [*prompt]


def test_the_shortest_of_problems_inside_the_window() -> None:
    texts = ["long, long", "short", "mid, mid", "short"]
    inside, outside = solved(0, texts), solved(1, texts[:1])
    found = choose_solutions([inside, outside], 6, Choice(per_problem=2, shortest=True, window=(0.3, 0.9)))
    assert [row["messages"][-1]["content"] for row in found.rows] == ["short", "mid, mid"]
    assert {row["problem"] for row in found.rows} == {"0"}
    assert (found.counts["over"], found.counts["outside"], found.counts["duplicates"]) == (1, 1, 1)


def test_rows_say_what_they_were_made_of(tiny_checkpoint: Path, tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"limit": 4})
    sampling = Sampling(max_new_tokens=MAX_NEW)
    sample_solutions(
        tiny_checkpoint, settings, sampling, num_samples=8, choice=Choice(), output=tmp_path, device="cpu"
    )
    file = tmp_path / "solutions.jsonl"
    row = json.loads(file.read_text().splitlines()[0])
    assert row["made"]["from"] == [{"source": PROBLEMS, "id": row["problem"]}]
    assert len(row["made"]["prompt_hash"]) == 16
    assert row["made"]["model"] == str(tiny_checkpoint) and 0 <= row["sample"] < 8
    assert [section.title for section in trace(file, row["id"])] == [f"{file}:1", f"made by {PROBLEMS}"]


def solved(number: int, texts: list[str]) -> tuple[PromptedProblem, SolvedProblem]:
    prompt = (Message(role="user", content="?"),)
    problem = PromptedProblem(problem=Problem(id=str(number), prompt=prompt, answer="1"), ids=[1])
    found = SolvedProblem(id=str(number), prompt="", judged=6, right=len(texts), cut=0, solutions=texts)
    return problem, found
