"""Conversations from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from foresail.data.chats.conversations import load_conversations
from foresail.records import Message

SHARED = Path(__file__).parents[4] / "shared" / "data" / "preference" / "llamafactory_demo"
USER, ASSISTANT = {"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}
CHAT = (Message(role="user", content="2+2?"), Message(role="assistant", content="4"))


def load_row(tmp_path: Path, row: Any) -> tuple[Message, ...]:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(row))
    (conversation,) = load_conversations(path)
    return conversation


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER, ASSISTANT]},
        {"prompt": "2+2?", "completion": "4"},
        {"prompt": [USER], "completion": [ASSISTANT]},
        {"prompt": [USER], "completion": "4"},
        {"messages": None, "prompt": "2+2?", "completion": "4", "text": "unused"},
    ],
)
def test_three_forms_give_the_same_conversation(tmp_path: Path, row: Any) -> None:
    assert load_row(tmp_path, row) == CHAT


def test_text_is_a_lone_assistant_message(tmp_path: Path) -> None:
    assert load_row(tmp_path, {"text": "Once."}) == (Message(role="assistant", content="Once."),)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER, ASSISTANT]},
        {"prompt": "2+2?", "completion": "4"},
        {"prompt": [USER], "completion": "4"},
    ],
)
def test_a_column_system_comes_first_in_every_form(tmp_path: Path, row: Any) -> None:
    system = Message(role="system", content="Be brief.")
    assert load_row(tmp_path, {**row, "system": "Be brief."}) == (system, *CHAT)


def test_a_public_set_loads_as_it_is() -> None:
    path = SHARED / "kto_en_demo.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    conversations = load_conversations(path)
    assert len(conversations) == 300
    assert [message.role for message in conversations[0]] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"mesages": []}, r"chats\.jsonl:1: no conversation; needs messages, .*did you mean mesages\?"),
        ({"prompt": "2+2?"}, "needs messages, prompt and completion, conversations, .* or text"),
        ({"messages": []}, r"chats\.jsonl:1: messages: expected a list of messages"),
        ({"messages": [USER]}, "has no assistant message, so there is nothing to learn"),
        ({"messages": [ASSISTANT, USER, ASSISTANT]}, "begins with the assistant; put a user message"),
        ({"prompt": "2+2?", "completion": " "}, "completion must be text that is not empty"),
        ({"text": 3}, "text must be text that is not empty, found 3"),
    ],
)
def test_bad_conversations_say_where_and_what(tmp_path: Path, row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_row(tmp_path, row)


def test_missing_conversations_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_conversations(tmp_path / "chats.jsonl")


def test_sharegpt_rows_are_conversations(tmp_path: Path) -> None:
    turns = [("human", "2+2?"), ("gpt", "Let me ask."), ("tool", "4"), ("gpt", "4")]
    row = {
        "conversations": [{"from": speaker, "value": value} for speaker, value in turns],
        "system": "Be brief.",
    }
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (conversation,) = load_conversations(path)
    assert [(message.role, message.content) for message in conversation] == [
        ("system", "Be brief."), ("user", "2+2?"), ("assistant", "Let me ask."), ("tool", "4"), ("assistant", "4"),
    ]  # fmt: skip
    own = {
        "conversations": [{"from": "system", "value": "Mine."}, *row["conversations"]],
        "system": "Be brief.",
    }
    path.write_text(json.dumps(own) + "\n" + json.dumps({"conversations": [USER, ASSISTANT]}) + "\n")
    first, second = load_conversations(path)
    assert first[0].content == "Mine." and len(first) == 5
    assert [message.role for message in second] == ["user", "assistant"]  # our names under that column


def test_alpaca_rows_are_conversations_also_beside_a_text(tmp_path: Path) -> None:
    rows = [
        {"instruction": "Add.", "input": "2 2", "output": "4", "text": "Below is an instruction …"},
        {"instruction": "Say hi.", "input": "", "output": "hi"},
        {"instruction": "Say ho.", "output": "ho"},
    ]
    path = tmp_path / "alpaca.json"
    path.write_text(json.dumps(rows))
    found = [[message.content for message in conversation] for conversation in load_conversations(path)]
    assert found == [["Add.\n\n2 2", "4"], ["Say hi.", "hi"], ["Say ho.", "ho"]]
    assert len(load_conversations(path, limit=2)) == 2


def test_alpaca_rows_may_have_a_system_message_and_earlier_turns(tmp_path: Path) -> None:
    row = {"instruction": "And 3+3?", "output": "6", "system": "Be brief.", "history": [["2+2?", "4"]]}
    path = tmp_path / "alpaca.json"
    path.write_text(json.dumps([row]))
    (found,) = load_conversations(path)
    assert [(message.role, message.content) for message in found] == [
        ("system", "Be brief."), ("user", "2+2?"), ("assistant", "4"), ("user", "And 3+3?"), ("assistant", "6"),
    ]  # fmt: skip
    path.write_text(json.dumps([row | {"history": ["2+2?", "4"]}]))
    with pytest.raises(ValueError, match=r"history must be a list of \[question, answer\]"):
        load_conversations(path)
