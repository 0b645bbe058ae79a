"""Conversations by the pass rates of their problems, and with thinking on or off; nothing is dropped in silence."""

from __future__ import annotations

import json
import random

import pytest
from tiny_world import write_lines

from foresail.data.chats.conversations import load_chats
from foresail.data.chats.encode import load_source
from foresail.data.chats.pass_rates import keep_window, read_pass_rates
from foresail.data.mixtures.reader import Reader
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.sources import Conversations
from foresail.tokenizer.thinking import BUILT_IN
from foresail.tokenizer.train import train_bpe


def rows(count: int, ids: bool = True) -> list[dict]:
    return [
        {**({"id": f"p{n}"} if ids else {}), "prompt": f"q{n}", "completion": f"a{n}"} for n in range(count)
    ]


def test_kept_is_what_a_count_by_hand_keeps(tmp_path):
    numbers = random.Random(0)
    for trial in range(30):
        count, ids = numbers.randint(1, 12), numbers.random() < 0.5
        file = write_lines(tmp_path / f"chains-{trial}.jsonl", rows(count, ids))
        names = [f"p{n}" if ids else f"chains-{trial}:{n}" for n in range(count)]
        known = {
            name: numbers.choice([None, 0.0, 0.25, 0.5, 1.0]) for name in names if numbers.random() < 0.8
        }
        known[names[0]] = 0.5
        low, high = numbers.choice([(0.0, 0.5), (0.25, 0.75), (0.5, 1.0)])
        rates = write_lines(
            tmp_path / "rates.jsonl", [{"id": name, "pass_rate": rate} for name, rate in known.items()]
        )
        source = Conversations(source=str(file), pass_rates=str(rates), pass_window=(low, high))
        found = load_source(source)
        inside = [
            n for n in range(count) if known.get(names[n]) is not None and low <= known[names[n]] <= high
        ]
        assert [kept.messages[0].content for kept in found.kept] == [f"q{n}" for n in inside]
        assert len(found.kept) + found.below + found.above + found.unmeasured == count
        assert found.below == sum(known.get(name) is not None and known[name] < low for name in names)
        assert f"kept {len(inside)} of {count}" in found.describe((low, high))


def test_several_chains_of_one_problem_share_its_rate(tmp_path):
    file = write_lines(tmp_path / "chains.jsonl", [{**row, "id": "p0"} for row in rows(3)])
    found = keep_window(load_chats(file), {"p0": 0.5}, (0.1, 0.9), "chains")
    assert len(found.kept) == 3


def test_rates_of_other_problems_are_refused_and_so_is_a_window_without_any(tmp_path):
    file = write_lines(tmp_path / "chains.jsonl", rows(2))
    for lines, words in (([("x", 0.5)], "none is of these"), ([("p0", 0.0)], "widen data.pass_window")):
        rates = write_lines(tmp_path / "r.jsonl", [{"id": name, "pass_rate": rate} for name, rate in lines])
        source = Conversations(source=str(file), pass_rates=str(rates), pass_window=(0.25, 0.75))
        with pytest.raises(ValueError, match=words):
            load_source(source)


def test_a_line_that_tells_no_rate_is_named(tmp_path):
    numbers = random.Random(1)
    values = ('"1"', "1.5", "true", "NaN", "-0.1", "[]")
    wrong = ["{", "[]", "3", '{"id": "a"}', '{"pass_rate": 1}']
    wrong += [f'{{"id": 1, "pass_rate": {value}}}' for value in values]
    for line in wrong:
        before = [json.dumps({"id": n, "pass_rate": 0.5}) for n in range(numbers.randint(0, 3))]
        path = tmp_path / "rates.jsonl"
        path.write_text("\n".join([*before, line]) + "\n")
        with pytest.raises(ValueError, match=rf"rates.jsonl:{len(before) + 1} does not have a problem's"):
            read_pass_rates(path)


def test_a_row_says_its_mode_and_the_source_counts_more(tmp_path):
    asked = {"prompt": "2?", "answer": "2", "completion": "<think>two</think>2"}
    modes = [{"enable_thinking": True}, {"thinking": False}, {"thinking": "a text"}, {}]
    file = write_lines(tmp_path / "rows.jsonl", [asked | mode for mode in modes])
    expected = [True, False, None, None]
    assert [one.thinking for one in load_chats(file)] == expected
    assert [problem.thinking for problem in load_problems(Problems(source=str(file)))] == expected
    forced = load_problems(Problems(source=str(file), thinking=False))
    assert {problem.thinking for problem in forced} == {False}
    assert {one.thinking for one in load_chats(file, thinking="auto")} == {True}
    write_lines(file, [asked | {"enable_thinking": "yes"}])
    with pytest.raises(ValueError, match=r"rows\.jsonl:1: enable_thinking must be true or false"):
        load_chats(file)


def test_answers_must_be_in_the_mode_that_is_learnt(tmp_path):
    tokenizer = train_bpe(["a"], vocab_size=300, chat_template=BUILT_IN["hybrid-short"][0])
    thinks = {"prompt": "2?", "completion": "<think>two</think>2"}
    file = write_lines(tmp_path / "rows.jsonl", [thinks])
    with pytest.raises(
        ValueError, match=r"conversation 1 of .*thinking is off and its answer has a thinking"
    ):
        Reader(tokenizer).conversations(Conversations(source=str(file), thinking=False))
    write_lines(file, [{**thinks, "completion": "<think>\n\n</think>2"}])
    with pytest.raises(ValueError, match="thinking is on and its answer has no thinking block"):
        Reader(tokenizer).conversations(Conversations(source=str(file), thinking=True))


def test_arithmetic_has_a_solution_for_either_mode():
    source = "arithmetic:count=3,seed=1"
    on, off = (load_chats(source, thinking=mode) for mode in (True, False))
    assert all("</think>" in one.messages[-1].content and one.thinking for one in on)
    assert [one.messages[-1].content.partition("</think>")[2] for one in on] == [
        one.messages[-1].content for one in off
    ]
    assert [one.id for one in on] == [problem.id for problem in load_problems(Problems(source=source))]
