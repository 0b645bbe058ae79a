"""Judged answers: the forms they come in, what teaches nothing, and what they are as ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_world import make_tokenizer, write_lines

from foresail.data.preferences.judged_answers import encode_judged, load_judged
from foresail.recipe.tables.sources import HeldOutAnswers
from foresail.records import Message

USER, GOOD = Message(role="user", content="1+1"), Message(role="assistant", content="2")
ASKED = [{"role": "user", "content": "1+1"}]
SAID = [{"role": "assistant", "content": "2"}]
DEMO = Path(__file__).parents[4] / "shared/data/preference/llamafactory_demo/kto_en_demo.jsonl.gz"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "1+1", "completion": "2", "label": True},
        {"prompt": ASKED, "completion": SAID, "label": 1},
        {"messages": [*ASKED, *SAID], "label": True},
        {"messages": [*ASKED, *SAID], "kto_tag": True},
        {"conversations": [{"from": "human", "value": "1+1"}, {"from": "gpt", "value": "2"}], "label": True},
        {"instruction": "1+1", "output": "2", "kto_tag": True},
    ],
    ids=["texts", "lists", "messages", "kto_tag", "sharegpt", "alpaca"],
)
def test_every_form_is_a_prompt_and_an_answer(tmp_path: Path, row: dict[str, Any]) -> None:
    (found,) = load_judged(write_lines(tmp_path / "a.jsonl", [row])).entries
    assert (found.prompt, found.answer, found.desirable) == ((USER,), (GOOD,), True)


def test_earlier_turns_and_a_system_message_belong_to_the_prompt(tmp_path: Path) -> None:
    messages = [*ASKED, *SAID, {"role": "user", "content": "and 3?"}, {"role": "assistant", "content": "5"}]
    row = {"messages": messages, "label": False, "system": "Add."}
    (found,) = load_judged(write_lines(tmp_path / "a.jsonl", [row])).entries
    assert [message.role for message in found.prompt] == ["system", "user", "assistant", "user"]
    assert found.answer[0].content == "5" and not found.desirable


def test_a_pair_is_a_good_and_a_bad_answer(tmp_path: Path) -> None:
    rows = [{"prompt": "1+1", "chosen": "2", "rejected": "3"}]
    found = load_judged(write_lines(tmp_path / "a.jsonl", rows))
    assert [(one.answer[0].content, one.desirable) for one in found.entries] == [("2", True), ("3", False)]
    assert found.places == [f"{tmp_path}/a.jsonl:1"] * 2


def test_what_teaches_nothing_is_counted(tmp_path: Path) -> None:
    rows = [
        {"prompt": "1+1", "completion": " ", "label": True},
        {"messages": [*ASKED, *SAID, *ASKED], "label": True},
    ]
    file = write_lines(tmp_path / "a.jsonl", [*rows, {"prompt": "1+1", "completion": "2", "label": False}])
    loaded = load_judged(file)
    assert len(loaded.entries) == 1
    assert loaded.unusable == {"with an empty answer": 1, "without an answer of the assistant": 1}
    with pytest.raises(ValueError, match="no answer to learn from: 1 with an empty answer, 1 without"):
        load_judged(write_lines(tmp_path / "b.jsonl", rows))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"prompt": "1+1", "completion": "2"}, r"a.jsonl:1: no judged answer; needs a label \(true: good"),
        ({"prompt": "1+1", "completion": "2", "label": "good"}, "label is true or false, found good"),
        ({"prompt": "1+1", "completion": "2", "label": -1}, "label is true or false, found -1"),
        ({"text": "1+1", "label": True}, "the answer has no prompt before it"),
    ],
)
def test_rows_that_are_none_stop_with_their_line(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        load_judged(write_lines(tmp_path / "a.jsonl", [row]))


def test_the_answer_alone_has_a_loss(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    row = {"messages": [*ASKED, *SAID, {"role": "user", "content": "3+4"}, *SAID], "label": True}
    file = write_lines(tmp_path / "a.jsonl", [row])
    (found,) = encode_judged(HeldOutAnswers(source=str(file)), tokenizer).entries
    learned = [token for token, mask in zip(found.ids, found.answer.loss_mask, strict=True) if mask]
    assert tokenizer.decode(learned[:-1]) == "2" and learned[-1] in tokenizer.eos_ids
    assert found.name == f"{file}:1" and found.compared == (found.answer,)


@pytest.mark.skipif(not DEMO.exists(), reason="LLaMA-Factory's file is not here")
def test_llama_factorys_file_is_read_whole() -> None:
    loaded = load_judged(DEMO)
    assert len(loaded.entries) == 300 and not loaded.unusable
    assert sum(answer.desirable for answer in loaded.entries) == 150
    assert all(answer.prompt[-1].role == "user" for answer in loaded.entries)
