"""Replies in OpenAI's form: one JSON object, or the events of a stream.

write_reply(reply)["choices"][0]["message"]["content"] -> "4"
[*write_events(reply)]                                 -> the response in one piece, its end, and [DONE]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foresail.chat.request import ChatMessage


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What was sampled, as text. `id` names the response, `model` who gave it, `created` when, in Unix time.

    `stop_text`: the request's text at which the response was cut. `thinking_tokens` are among `completion_tokens`.
    """

    id: str
    model: str
    message: ChatMessage
    finish: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    completion_tokens: int
    logprobs: tuple[tuple[str, float], ...] | None = None  # of each token, where they were asked for
    created: int = 0
    stop_text: str | None = None
    thinking_tokens: int = 0


def cut_at(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop text: cut_at("a\\nQ: b", ["\\nQ:"]) -> "a"."""
    mark = first_stop(text, stop)
    return text if mark is None else text[: text.find(mark)]


def first_stop(text: str, stop: Sequence[str]) -> str | None:
    """first_stop("a b c", ["c", "b"]) -> "b"; None if there is none."""
    return min((mark for mark in stop if mark in text), key=text.find, default=None)


def write_reply(reply: Reply) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "refusal": None, **write_message(reply.message)},
        "finish_reason": reply.finish,
        "logprobs": write_logprobs(reply),
    }
    return {**heading(reply, "chat.completion"), "choices": [choice], "usage": write_usage(reply)}


def write_events(reply: Reply, *, with_usage: bool = False) -> Iterator[str]:
    """Server-sent events."""
    base = heading(reply, "chat.completion.chunk")
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


def heading(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": reply.created, "model": reply.model}


def write_message(message: ChatMessage) -> dict[str, Any]:
    if not message.tool_calls:
        return {"content": message.content}
    return {
        "content": message.content or None,
        "tool_calls": [call.model_dump() for call in message.tool_calls],
    }


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
