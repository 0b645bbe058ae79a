"""Conversations to imitate (SFT), in the forms that users of TRL, verl, ShareGPT and Alpaca have.

messages              [{"role": "user", …}, {"role": "assistant", …}, …]
prompt + completion   texts (one user turn, one assistant turn) or lists of messages
conversations         [{"from": "human", "value": …}, {"from": "gpt", …}, …], with a column system or without
instruction + output  one user turn, with what `input` holds after it, and one assistant turn
text                  plain text, without turns: a lone assistant message, which the tokenizer encodes
                      without a chat template

An assistant message may call tools (`tool_calls`, ShareGPT's speaker `function_call`), a column `tools` tells which
there are, and messages may say whether they have a loss (`train`, `weight`).

A generator whose problems come with solutions (`word-problems:…`, `programs:…`) gives conversations as well;
those of `multi-hop:…` have several turns, with search results between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from foresail.data import multi_hop, multi_hop_traces
from foresail.data.generators import generate, names_generator
from foresail.data.messages import to_messages
from foresail.data.rows import Row, excerpt, name_columns, read_rows
from foresail.data.tool_calls import read_call, read_tools
from foresail.records import Message, Problem, Role

SPEAKERS: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "function_call": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}


@dataclass(frozen=True, kw_only=True)
class Chat:
    """A conversation, and the tools that its chat template is told of."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()


def load_chats(source: str | Path, limit: int | None = None) -> list[Chat]:
    """A row {"prompt": "2+2", "completion": "4"} -> Chat of Message(user, "2+2"), Message(assistant, "4")."""
    if names_generator(str(source)):
        return [Chat(messages=to_imitate(problem)) for problem in generate(str(source))[:limit]]
    return [to_chat(row) for row in islice(read_rows(Path(source)), limit)]


def load_conversations(source: str | Path, limit: int | None = None) -> list[tuple[Message, ...]]:
    """The messages of each."""
    return [chat.messages for chat in load_chats(source, limit)]


def to_chat(row: Row) -> Chat:
    return Chat(
        messages=to_conversation(row), tools=read_tools(row.columns.get("tools"), f"{row.place}: tools")
    )


def to_imitate(problem: Problem) -> tuple[Message, ...]:
    """A generated problem and the solution it came with."""
    if problem.source == multi_hop.SOURCE:
        return multi_hop_traces.trace(problem)
    if "solution" not in problem.extra:
        raise ValueError(
            f"{problem.source} makes problems without solutions, so there is nothing to imitate; use "
            "word-problems:…, programs:… or multi-hop:…, or a file of conversations"
        )
    return (*problem.prompt, Message(role="assistant", content=problem.extra["solution"]))


def to_conversation(row: Row) -> tuple[Message, ...]:
    form = next((form for form in FORMS if all(row.columns.get(name) is not None for name in form)), None)
    if form is None:
        forms = [" and ".join(form) for form in FORMS]
        names = tuple(name for form in FORMS for name in form)
        raise ValueError(
            f"{row.place}: no conversation; needs {', '.join(forms[:-1])}, or {forms[-1]}; "
            + name_columns(row.columns, names)
        )
    conversation = FORMS[form](row)
    if form == ("text",):
        return conversation
    if conversation[0].role == "assistant":
        raise ValueError(
            f"{row.place}: the conversation begins with the assistant; put a user message before it"
        )
    if all(message.role != "assistant" for message in conversation):
        raise ValueError(
            f"{row.place}: the conversation has no assistant message, so there is nothing to learn"
        )
    return conversation


def from_messages(row: Row) -> tuple[Message, ...]:
    return to_messages(row.columns["messages"], f"{row.place}: messages")


def from_completion(row: Row) -> tuple[Message, ...]:
    return (*to_turns(row, "prompt", "user"), *to_turns(row, "completion", "assistant"))


def from_sharegpt(row: Row) -> tuple[Message, ...]:
    """[{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": "4"}] -> user and assistant messages."""
    value, place = row.columns["conversations"], f"{row.place}: conversations"
    turns = [to_role(entry, place) for entry in value] if isinstance(value, list) else value
    conversation = to_messages(turns, place)
    system = row.columns.get("system")
    has_own = not system or conversation[0].role == "system"
    return conversation if has_own else (Message(role="system", content=str(system)), *conversation)


def to_role(entry: Any, place: str) -> Any:
    """ShareGPT's names for ours; what is not ShareGPT's stays as it is."""
    if not isinstance(entry, dict) or not {"from", "value"} <= entry.keys():
        return entry
    speaker = entry["from"]
    if speaker not in SPEAKERS:
        raise ValueError(f"{place}: unknown speaker {speaker!r}; use one of {', '.join(SPEAKERS)}")
    said = {**entry, "role": SPEAKERS[speaker], "content": entry["value"]}
    if speaker == "function_call" and isinstance(entry["value"], str):
        said |= {"content": "", "tool_calls": read_call(entry["value"], place)}
    return said


def from_alpaca(row: Row) -> tuple[Message, ...]:
    r"""{"instruction": "Add.", "input": "2 2", "output": "4"} -> user "Add.\n\n2 2", assistant "4"."""
    (asked,) = to_turns(row, "instruction", "user")
    more = row.columns.get("input")
    if more:
        asked = Message(role="user", content=f"{asked.content}\n\n{more}")
    return (asked, *to_turns(row, "output", "assistant"))


def from_text(row: Row) -> tuple[Message, ...]:
    return to_turns(row, "text", "assistant")


def to_turns(row: Row, column: str, role: Role) -> tuple[Message, ...]:
    value = row.columns[column]
    if isinstance(value, list):
        return to_messages(value, f"{row.place}: {column}")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{row.place}: {column} must be text that is not empty, found {excerpt(value)}")
    return (Message(role=role, content=value),)


# By the columns a row must have, in the order in which they are looked for.
FORMS: dict[tuple[str, ...], Callable[[Row], tuple[Message, ...]]] = {
    ("messages",): from_messages,
    ("prompt", "completion"): from_completion,
    ("conversations",): from_sharegpt,
    ("instruction", "output"): from_alpaca,
    ("text",): from_text,
}
