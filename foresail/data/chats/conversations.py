"""Conversations to imitate (SFT), in the forms that users of TRL, verl, ShareGPT and Alpaca have.

messages              [{"role": "user", …}, {"role": "assistant", …}, …]
prompt + completion   texts (one user turn, one assistant turn) or lists of messages
                      (answers in a prompt have no loss)
conversations         [{"from": "human", "value": …}, {"from": "gpt", …}, …]
instruction + output  one user turn, with what `input` holds after it, and one assistant turn; a column history
                      ([["question", "answer"], …]) stands before them
text                  plain text, without turns: a lone assistant message, which the tokenizer encodes
                      without a chat template

A column `system` stands before all of these but plain text, unless there is a system message. An assistant message
may call tools (`tool_calls`, ShareGPT's speaker `function_call`), a column `tools` tells which there are, and
messages may say whether they have a loss (`train`, `weight`).

A generator whose problems come with solutions (`word-problems:…`, `programs:…`) gives conversations as well;
those of `multi-hop:…` have several turns, with search results between them. `arithmetic:…` has two solutions to
each problem: a worked one, which thinks, and a direct one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from foresail.data.chats.messages import to_messages
from foresail.data.chats.tool_calls import read_call, read_tools
from foresail.data.files import excerpt
from foresail.data.made import arithmetic, multi_hop, multi_hop_traces
from foresail.data.made.generators import generate, names_generator
from foresail.data.rows import Row, choose_form, id_of, read_rows, thinking_of
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


Mode = bool | Literal["auto"] | None  # thinking on, off, as the answer shows, or as the template has it


@dataclass(frozen=True, kw_only=True)
class Chat:
    """A conversation with its tools for the chat template, and with thinking on or off where the row says so.

    `row` is its number in its source, from 0, and `id` its problem's, where it has one. `only_last`: its last
    answer alone is learnt.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    thinking: bool | None = None
    id: str | None = None
    row: int = 0
    only_last: bool = False


def load_chats(source: str | Path, limit: int | None = None, thinking: Mode = None) -> list[Chat]:
    """A row {"prompt": "2+2", "completion": "4"} -> Chat of Message(user, "2+2"), Message(assistant, "4").

    `thinking`, if it is set, overrides the rows.
    """
    if names_generator(str(source)):
        mode = thinking if isinstance(thinking, bool) else None
        chats = [
            Chat(messages=to_imitate(problem, mode), id=problem.id)
            for problem in generate(str(source))[:limit]
        ]
    else:
        chats = [to_chat(row) for row in islice(read_rows(Path(source)), limit)]
    modes = [one.thinking if thinking is None else in_mode(one, thinking) for one in chats]
    return [
        replace(one, row=number, thinking=mode)
        for number, (one, mode) in enumerate(zip(chats, modes, strict=True))
    ]


def in_mode(chat: Chat, thinking: bool | Literal["auto"]) -> bool:
    return thinks(chat.messages) if thinking == "auto" else thinking


def thinks(messages: Sequence[Message]) -> bool:
    """Whether the last answer has a thinking block, and not an empty one."""
    content = next((message.content for message in reversed(messages) if message.role == "assistant"), "")
    thought, closed, _ = content.rpartition("</think>")
    return bool(closed and thought.replace("<think>", "").strip())


def load_conversations(source: str | Path, limit: int | None = None) -> list[tuple[Message, ...]]:
    """The messages of each."""
    return [chat.messages for chat in load_chats(source, limit)]


def to_chat(row: Row) -> Chat:
    return Chat(
        messages=to_conversation(row),
        tools=read_tools(row.columns.get("tools"), f"{row.place}: tools"),
        thinking=thinking_of(row),
        id=id_of(row),
    )


def to_imitate(problem: Problem, thinking: bool | None = None) -> tuple[Message, ...]:
    """A generated problem and the solution it came with; with thinking on or off, the one of that mode."""
    if problem.source == multi_hop.SOURCE:
        return multi_hop_traces.trace(problem)
    if problem.source == arithmetic.SOURCE and thinking is not None:
        solution = arithmetic.worked(problem) if thinking else arithmetic.direct(problem)
        return (*problem.prompt, Message(role="assistant", content=solution))
    if "solution" not in problem.extra:
        raise ValueError(
            f"{problem.source} makes problems without solutions, so there is nothing to imitate; use "
            "word-problems:…, programs:… or multi-hop:…, arithmetic:… with thinking = true or false, or a file of "
            "conversations"
        )
    return (*problem.prompt, Message(role="assistant", content=problem.extra["solution"]))


def to_conversation(row: Row) -> tuple[Message, ...]:
    form = choose_form(row, FORMS, "conversation")
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
    return with_system(row, conversation)


def from_messages(row: Row) -> tuple[Message, ...]:
    return to_messages(row.columns["messages"], f"{row.place}: messages")


def from_completion(row: Row) -> tuple[Message, ...]:
    """Answers inside the prompt have no loss, as in TRL, unless they say so themselves."""
    prompt = (
        replace(message, train=False) if message.role == "assistant" and message.train is None else message
        for message in to_turns(row, "prompt", "user")
    )
    return (*prompt, *to_turns(row, "completion", "assistant"))


def from_sharegpt(row: Row) -> tuple[Message, ...]:
    """[{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": "4"}] -> user and assistant messages."""
    value, place = row.columns["conversations"], f"{row.place}: conversations"
    turns = [to_role(entry, place) for entry in value] if isinstance(value, list) else value
    return to_messages(turns, place)


def with_system(row: Row, conversation: tuple[Message, ...]) -> tuple[Message, ...]:
    """The column `system` as the first message, unless the conversation has a system message."""
    system = row.columns.get("system")
    has_own = not system or conversation[0].role == "system"
    return conversation if has_own else (Message(role="system", content=str(system)), *conversation)


def to_role(entry: Any, place: str) -> Any:
    """ShareGPT's speaker as our role; other values are unchanged."""
    if not isinstance(entry, dict) or not {"from", "value"} <= entry.keys():
        return entry
    speaker = entry["from"]
    if speaker not in SPEAKERS:
        raise ValueError(f"{place}: unknown speaker {speaker!r}; use one of {', '.join(SPEAKERS)}")
    message = {**entry, "role": SPEAKERS[speaker], "content": entry["value"]}
    if speaker == "function_call" and isinstance(entry["value"], str):
        message |= {"content": "", "tool_calls": read_call(entry["value"], place)}
    return message


def from_alpaca(row: Row) -> tuple[Message, ...]:
    r"""{"instruction": "Add.", "input": "2 2", "output": "4"} -> user "Add.\n\n2 2", assistant "4"."""
    return (*alpaca_prompt(row), *to_turns(row, "output", "assistant"))


def alpaca_prompt(row: Row) -> tuple[Message, ...]:
    """The user message, with the column `history` as turns before it."""
    (question,) = to_turns(row, "instruction", "user")
    more = row.columns.get("input")
    if more:
        question = Message(role="user", content=f"{question.content}\n\n{more}")
    return (*earlier_turns(row), question)


def earlier_turns(row: Row) -> list[Message]:
    """The column history: [["2+2?", "4"]] -> user "2+2?", assistant "4"."""
    history = row.columns.get("history") or []
    if not isinstance(history, list) or not all(is_exchange(turn) for turn in history):
        raise ValueError(
            f"{row.place}: history must be a list of [question, answer], found {excerpt(history)}"
        )
    roles: tuple[Role, Role] = ("user", "assistant")
    return [
        Message(role=role, content=text) for turn in history for role, text in zip(roles, turn, strict=True)
    ]


def is_exchange(turn: Any) -> bool:
    return isinstance(turn, list) and len(turn) == 2 and all(isinstance(text, str) and text for text in turn)


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
