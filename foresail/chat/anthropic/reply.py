"""Replies in Anthropic's form: a message of blocks, or the events of a stream.

write_message(reply)["content"] -> [{"type": "thinking", …}, {"type": "text", "text": "4"}]
[*write_events(reply)]          -> message_start, the blocks, message_delta, message_stop
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foresail.chat.errors import Refusal
from foresail.chat.reply import Reply
from foresail.chat.thinking import split_thinking

REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
Block = dict[str, Any]


def write_message(reply: Reply) -> dict[str, Any]:
    return heading(reply) | {"content": blocks_of(reply), **ending(reply), "usage": usage(reply)}


def write_events(reply: Reply) -> Iterator[str]:
    """Server-sent events. Each block comes in one piece."""
    start = heading(reply) | {"content": [], "stop_reason": None, "stop_sequence": None}
    start["usage"] = usage(reply) | {"output_tokens": 0}
    yield event("message_start", message=start)
    for index, block in enumerate(blocks_of(reply)):
        empty, deltas = opened(block)
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta=ending(reply), usage={"output_tokens": reply.completion_tokens})
    yield event("message_stop")


def write_error(refusal: Refusal) -> dict[str, Any]:
    kind = ERRORS.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": None}


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def heading(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def ending(reply: Reply) -> dict[str, Any]:
    at_text = reply.finish == "stop" and reply.stop_text is not None
    return {
        "stop_reason": "stop_sequence" if at_text else REASONS[reply.finish],
        "stop_sequence": reply.stop_text if at_text else None,
    }


def usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.prompt_tokens,
        "output_tokens": reply.completion_tokens,
        "cache_creation_input_tokens": None,  # not counted
        "cache_read_input_tokens": None,
    }


def blocks_of(reply: Reply) -> list[Block]:
    """Thinking, text and calls, without empty ones."""
    blocks: list[Block] = []
    text = reply.message.content
    if (thinking := split_thinking(text)) is not None:
        blocks.append({"type": "thinking", "thinking": thinking.thought, "signature": thinking.seal})
        text = thinking.text
    if text:
        blocks.append({"type": "text", "text": text, "citations": None})
    for call in reply.message.tool_calls:
        arguments = json.loads(call.function.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.function.name, "input": arguments})
    return blocks


def opened(block: Block) -> tuple[Block, list[Block]]:
    """A block as a stream begins it, and the deltas that fill it."""
    if block["type"] == "thinking":
        return block | {"thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
