"""Conversations to imitate (SFT), in the three forms that users of TRL and verl have.

messages              [{"role": "user", …}, {"role": "assistant", …}, …]
prompt + completion   texts (one user turn, one assistant turn) or lists of messages
text                  plain text, without turns: a lone assistant message, which the tokenizer encodes
                      without a chat template

A generator whose problems come with solutions (`word-problems:…`, `programs:…`) gives conversations as well.
"""

from __future__ import annotations

from pathlib import Path

from foresail.data.generators import generate, names_generator
from foresail.data.rows import Row, excerpt, name_columns, read_rows, to_messages
from foresail.records import Message, Problem, Role


def load_conversations(source: str | Path) -> list[tuple[Message, ...]]:
    """A row {"prompt": "2+2", "completion": "4"} -> (Message(user, "2+2"), Message(assistant, "4"))."""
    if names_generator(str(source)):
        return [to_imitate(problem) for problem in generate(str(source))]
    return [to_conversation(row) for row in read_rows(Path(source))]


def to_imitate(problem: Problem) -> tuple[Message, ...]:
    """A generated problem and the solution it came with."""
    if "solution" not in problem.extra:
        raise ValueError(
            f"{problem.source} makes problems without solutions, so there is nothing to imitate; use "
            "word-problems:… or programs:…, or a file of conversations"
        )
    return (*problem.prompt, Message(role="assistant", content=problem.extra["solution"]))


def to_conversation(row: Row) -> tuple[Message, ...]:
    columns = row.columns
    if columns.get("messages") is not None:
        conversation = to_messages(columns["messages"], f"{row.place}: messages")
    elif columns.get("prompt") is not None and columns.get("completion") is not None:
        conversation = (*to_turns(row, "prompt", "user"), *to_turns(row, "completion", "assistant"))
    elif columns.get("text") is not None:
        return to_turns(row, "text", "assistant")
    else:
        raise ValueError(
            f"{row.place}: no conversation; needs messages, prompt and completion, or text; "
            + name_columns(columns, ("messages", "prompt", "completion", "text"))
        )
    if conversation[0].role == "assistant":
        raise ValueError(
            f"{row.place}: the conversation begins with the assistant; put a user message before it"
        )
    if all(message.role != "assistant" for message in conversation):
        raise ValueError(
            f"{row.place}: the conversation has no assistant message, so there is nothing to learn"
        )
    return conversation


def to_turns(row: Row, column: str, role: Role) -> tuple[Message, ...]:
    value = row.columns[column]
    if isinstance(value, list):
        return to_messages(value, f"{row.place}: {column}")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{row.place}: {column} must be text that is not empty, found {excerpt(value)}")
    return (Message(role=role, content=value),)
