"""Conversations that a search makes up, a tokenizer of single bytes, and a chat template that writes tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from foresail.data.chats.conversations import Chat
from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

TOOLS_TEMPLATE = """\
{%- if tools %}{{- '<|user|>TOOLS ' + (tools | tojson) + '<|end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {{- '<|' + message.role + '|>' + message.content }}
    {%- for call in message.tool_calls or [] %}{{- '<call>' + (call.function | tojson) + '</call>' }}{%- endfor %}
    {{- '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}"""


def byte_tokenizer(template: str = TOOLS_TEMPLATE) -> Tokenizer:
    """No merges but those of control tokens: a mask then tells of single characters' bytes."""
    made = train_bpe([""], vocab_size=300)
    return Tokenizer(replace(made.files, chat_template=template))


words = st.text('ab {}"\\\n.é日🙂', min_size=1, max_size=12)
arguments = st.dictionaries(
    st.sampled_from("xyz"), words | st.integers() | st.booleans() | st.none(), max_size=2
)


@st.composite
def messages(draw: st.DrawFn, *, flags: bool = False) -> tuple[Message, ...]:
    """System messages or none, then exchanges: a user's message, calls with their results, an answer."""
    found = [Message(role="system", content=draw(words)) for _ in range(draw(st.integers(0, 1)))]
    for _ in range(draw(st.integers(1, 4))):
        found += [Message(role="user", content=draw(words)) for _ in range(draw(st.integers(1, 2)))]
        for _ in range(draw(st.integers(0, 2))):
            calls = [
                {
                    "type": "function",
                    "function": {"name": draw(st.sampled_from(["add", "look"])), "arguments": given},
                }
                for given in draw(st.lists(arguments, min_size=1, max_size=2))
            ]
            found.append(Message(role="assistant", content="", extra={"tool_calls": calls}))
            found.append(Message(role="tool", content=draw(words)))
        found.append(Message(role="assistant", content=draw(words)))
    if flags:
        found = [
            replace(message, train=draw(st.sampled_from([None, None, True, False]))) for message in found
        ]
    return tuple(found)


def schema(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    tools = tuple(schema(name) for name in draw(st.sampled_from([(), ("add",), ("add", "look")])))
    return Chat(messages=draw(messages()), tools=tools)
