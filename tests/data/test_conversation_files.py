"""Conversations from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from foresail.data.conversations import load_conversations
from foresail.records import Message

SHARED = Path(__file__).parents[3] / "shared" / "data" / "preference" / "llamafactory_demo"
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
        ({"prompt": "2+2?"}, "needs messages, prompt and completion, or text"),
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
