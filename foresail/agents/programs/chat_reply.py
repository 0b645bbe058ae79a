"""A response as OpenAI's clients read it: one JSON object, or the events of a stream.

    write_reply(reply)["choices"][0]["message"]["content"] -> "4"
    [*write_events(reply)]                                 -> the response in one piece, its end, and [DONE]

Tool calls are read from the model's text in the form that its chat template teaches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foresail.agents.programs.chat_wire import Call, ChatMessage, one_form
from foresail.agents.tools.call_formats import Hermes, ToolCall
from foresail.agents.tools.markup import THINK_END

MODEL = "policy"  # its name in replies; requests may say what they like
HERMES = Hermes()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What was drawn, as text. `id` names the response; two of one episode never share it."""

    id: str
    message: ChatMessage
    finish: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    completion_tokens: int
    logprobs: tuple[tuple[str, float], ...] | None = None  # of each token, where they were asked for


def split_calls(text: str, reply_id: str) -> ChatMessage:
    """The words before the first call, and the calls; text with a call that cannot be read stays text."""
    calls = HERMES.parse(text)
    readable = [call for call in calls if isinstance(call, ToolCall)]
    if not calls or len(readable) < len(calls):
        return ChatMessage(role="assistant", content=text)
    first = text.find(HERMES.OPEN, text.rfind(THINK_END) + 1)
    return ChatMessage(
        role="assistant",
        content=text[: max(0, first)].rstrip(),
        calls=tuple(
            Call(id=f"call_{reply_id}_{number}", name=call.name, arguments=one_form(dict(call.arguments)))
            for number, call in enumerate(readable)
        ),
    )


def with_calls(message: ChatMessage) -> str:
    """A message's text with its calls, as the model would have written them."""
    written = [message.content] if message.content else []
    for call in message.calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = None
        known = arguments if isinstance(arguments, dict) else {"arguments": call.arguments}
        written.append(HERMES.write(ToolCall(call.name, known)))
    return "\n".join(written)


def cut_at(text: str, stop: Sequence[str]) -> str:
    """Without what follows a stop text, and without the text itself: cut_at("a\\nQ: b", ["\\nQ:"]) -> "a"."""
    places = [place for mark in stop if (place := text.find(mark)) >= 0]
    return text[: min(places)] if places else text


def write_reply(reply: Reply, created: int = 0) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "refusal": None, **write_message(reply.message)},
        "finish_reason": reply.finish,
        "logprobs": write_logprobs(reply),
    }
    return {**heading(reply, "chat.completion", created), "choices": [choice], "usage": write_usage(reply)}


def write_events(reply: Reply, created: int = 0, *, with_usage: bool = False) -> Iterator[str]:
    """Server-sent events."""
    base = heading(reply, "chat.completion.chunk", created)
    delta = {"role": "assistant", **write_message(reply.message)}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(delta["tool_calls"])]
    first = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": write_logprobs(reply)}
    last = {"index": 0, "delta": {}, "finish_reason": reply.finish, "logprobs": None}
    events: list[dict[str, Any]] = [{**base, "choices": [choice]} for choice in (first, last)]
    if with_usage:
        events.append({**base, "choices": [], "usage": write_usage(reply)})
    yield from (f"data: {json.dumps(event)}\n\n" for event in events)
    yield "data: [DONE]\n\n"


def heading(reply: Reply, kind: str, created: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": created, "model": MODEL}


def write_message(message: ChatMessage) -> dict[str, Any]:
    if not message.calls:
        return {"content": message.content}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {"content": message.content or None, "tool_calls": calls}


def write_usage(reply: Reply) -> dict[str, int]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }


def write_logprobs(reply: Reply) -> dict[str, Any] | None:
    if reply.logprobs is None:
        return None
    return {
        "content": [
            {"token": text, "logprob": logprob, "bytes": [*text.encode()], "top_logprobs": []}
            for text, logprob in reply.logprobs
        ],
        "refusal": None,
    }
