"""Chat requests of programs, checked for training: read_request(fields) -> ChatRequest.

The recipe decides how responses are sampled: temperature, top_p and seed are ignored. Any other option that would
change a response and is not supported is refused, with advice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foresail.chat.errors import Refusal
from foresail.chat.request import ChatMessage, one_form, parse_request

IGNORED = frozenset(
    "model temperature top_p top_k min_p seed user metadata store service_tier parallel_tool_calls "
    "reasoning_effort enable_thinking thinking_token_budget verbosity prompt_cache_key prompt_cache_retention "
    "safety_identifier".split()
)
# Options whose other values would change a response.
ALLOWED_VALUES: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "top_logprobs": (0,),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "functions": ([],),
    "tool_choice": ("auto", "none"),
}
READ = frozenset(
    "messages tools max_tokens max_completion_tokens stop stream stream_options logprobs".split()
)


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    messages: tuple[ChatMessage, ...]
    tools: str = ""  # JSON in one form; "" where there are none
    reads_calls: bool = False  # whether tool calls in the response are taken out of its text
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    stream: bool = False


def read_request(fields: Mapping[str, Any]) -> ChatRequest:
    """Of a chat completion request; raises a Refusal for one that cannot be answered."""
    for name, value in fields.items():
        check_option(name, value)
    asked = parse_request({name: fields[name] for name in READ & fields.keys()})
    try:
        tools = one_form(fields["tools"]) if asked.tools else ""
    except RecursionError:
        raise Refusal("the tools are nested too deeply", param="tools") from None
    return ChatRequest(
        messages=asked.messages,
        tools=tools,
        reads_calls=bool(asked.tools) and fields.get("tool_choice") != "none",
        max_tokens=asked.token_limit,
        stop=asked.stop,
        logprobs=bool(asked.logprobs),
        stream=bool(asked.stream),
    )


def check_option(name: str, value: Any) -> None:
    if value is None or name in READ or name in IGNORED:
        return
    if name not in ALLOWED_VALUES:
        raise Refusal(f"{name[:60]} is not an option of this endpoint; leave it out", param=name[:60])
    if value not in ALLOWED_VALUES[name]:
        allowed = " or ".join(map(json.dumps, ALLOWED_VALUES[name]))
        raise Refusal(
            f"{name} can only be {allowed} here: what is sampled is what is trained on; leave it out",
            param=name,
        )
