"""Replies in the form of OpenAI's responses API: a response of items, or the events of a stream.

write_response(reply, fields)["output"] -> [{"type": "message", "content": [{"type": "output_text", …}], …}]
[*write_events(reply, fields)]          -> response.created, items and their parts, response.completed

A response repeats settings of its request, which are read from the request's `fields`. Cached tokens are not
counted: the form has no place for an unknown number, so it says 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foresail.chat.fields import Fields
from foresail.chat.reply import Reply
from foresail.chat.thinking import split_thinking

REPEATED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "user": None,
}
Item = dict[str, Any]


def write_response(reply: Reply, fields: Fields) -> dict[str, Any]:
    status = "incomplete" if reply.finish == "length" else "completed"
    return heading(reply, fields, status) | {
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": items_of(reply, status),
        "usage": {
            "input_tokens": reply.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": reply.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": reply.thinking_tokens},
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        },
    }


def heading(reply: Reply, fields: Fields, status: str) -> dict[str, Any]:
    repeated = {
        name: default if fields.get(name) is None else fields[name] for name, default in REPEATED.items()
    }
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "model": reply.model,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "previous_response_id": None,
        "store": False,
        "truncation": "disabled",
        "background": False,
        "output": [],
        "usage": None,
        **repeated,
    }


def items_of(reply: Reply, status: str) -> list[Item]:
    """Reasoning, a message and calls, without empty ones."""
    items: list[Item] = []
    text = reply.message.content
    if (thinking := split_thinking(text)) is not None:
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{reply.id}",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": thinking.thought}],
                "encrypted_content": thinking.seal,
                "status": "completed",
            }
        )
        text = thinking.text
    if text or not (items or reply.message.tool_calls):
        items.append(
            {
                "type": "message",
                "id": f"msg_{reply.id}",
                "role": "assistant",
                "status": status,
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
            }
        )
    for call in reply.message.tool_calls:
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{call.id}",
                "call_id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
                "status": "completed",
            }
        )
    return items


def write_events(reply: Reply, fields: Fields) -> Iterator[str]:
    """Server-sent events. Each part comes in one piece."""
    for number, event in enumerate(events(reply, fields)):
        numbered = event | {"sequence_number": number}
        yield f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n"


def events(reply: Reply, fields: Fields) -> Iterator[dict[str, Any]]:
    started = heading(reply, fields, "in_progress")
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    response = write_response(reply, fields)
    for index, item in enumerate(response["output"]):
        place = {"item_id": item["id"], "output_index": index}
        empty = item | {"status": "in_progress"}
        if item["type"] == "function_call":
            yield added(index, empty | {"arguments": ""})
            yield from call_events(item, place)
        else:
            yield added(
                index, empty | {"content": []} | ({"encrypted_content": None} if is_thought(item) else {})
            )
            for number, part in enumerate(item["content"]):
                yield from part_events(part, place | {"content_index": number})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def is_thought(item: Item) -> bool:
    return bool(item["type"] == "reasoning")


def added(index: int, item: Item) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def call_events(item: Item, place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = "response.function_call_arguments"
    yield {"type": f"{kind}.delta", "delta": item["arguments"], **place}
    yield {"type": f"{kind}.done", "arguments": item["arguments"], "name": item["name"], **place}


def part_events(part: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = f"response.{part['type']}"
    more: dict[str, Any] = {"logprobs": []} if part["type"] == "output_text" else {}
    yield {"type": "response.content_part.added", "part": part | {"text": ""}, **place}
    yield {"type": f"{kind}.delta", "delta": part["text"], **more, **place}
    yield {"type": f"{kind}.done", "text": part["text"], **more, **place}
    yield {"type": "response.content_part.done", "part": part, **place}
