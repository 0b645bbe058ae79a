"""OpenAI's chat completions as they go over the wire: bytes in, a request out; a reply in, JSON out.

read_request(b'{"messages": [{"role": "user", "content": "2+2?"}]}').messages[0].content -> "2+2?"

The recipe rules how responses are drawn, since training measures the policy against it: temperature, top_p and seed
are read over. What would change a response otherwise and cannot be had is refused, with a word on what to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from foresail.records import Role

READ_OVER = frozenset(
    "model temperature top_p top_k min_p seed user metadata store service_tier parallel_tool_calls stream_options "
    "reasoning_effort verbosity prompt_cache_key prompt_cache_retention safety_identifier".split()
)
# Options whose other values would change a response.
ONLY: dict[str, tuple[Any, ...]] = {
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
READ = frozenset("messages tools max_tokens max_completion_tokens stop stream logprobs".split())
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
MOST_STOPS, LONGEST_STOP = 4, 64


class Refusal(Exception):
    """A request that gets no response: an HTTP status and OpenAI's form of an error."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None):
        super().__init__(message)
        self.message, self.status, self.code, self.param = message, status, code, param

    def to_json(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {
            "error": {"message": self.message, "type": kind, "param": self.param, "code": self.code},
        }


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call in a message. `arguments` is JSON, in one form however a client writes it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    role: Role
    content: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    messages: tuple[ChatMessage, ...]
    tools: str = ""  # JSON in one form; "" where there are none
    reads_calls: bool = False  # whether tool calls in the response are taken out of its text
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    stream: bool = False
    with_usage: bool = False  # at the end of a stream


def read_request(body: bytes) -> ChatRequest:
    """Raises a Refusal for whatever is not a request that can be answered."""
    try:
        return to_request(json.loads(body))
    except RecursionError:
        raise Refusal("the request is nested too deeply") from None
    except ValueError as error:  # also: bytes that are no text, a number of ten thousand digits
        raise Refusal(f"the request is not JSON: {error}") from None


def to_request(given: Any) -> ChatRequest:
    if not isinstance(given, dict):
        raise Refusal('a request is a JSON object: {"model": …, "messages": […]}')
    for name, value in given.items():
        check_option(name, value)
    messages = tuple(read_message(entry, place) for place, entry in enumerate(read_list(given, "messages")))
    if not messages or messages[-1].role == "assistant":
        refuse(
            "messages",
            "must end with a message of the user, the system or a tool, to which there is an answer",
        )
    tools = [read_tool(tool) for tool in read_list(given, "tools")] if given.get("tools") else []
    options = given.get("stream_options")
    return ChatRequest(
        messages=messages,
        tools=one_form(tools) if tools else "",
        reads_calls=bool(tools) and given.get("tool_choice") != "none",
        max_tokens=read_limit(given),
        stop=read_stop(given.get("stop")),
        logprobs=read_flag(given, "logprobs"),
        stream=read_flag(given, "stream"),
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def refuse(param: str, what: str) -> NoReturn:
    raise Refusal(f"{param} {what}", param=param)


def check_option(name: str, value: Any) -> None:
    if value is None or name in READ or name in READ_OVER:
        return
    if name not in ONLY:
        refuse(name[:60], "is not an option of this endpoint; leave it out")
    if value not in ONLY[name]:
        allowed = " or ".join(map(json.dumps, ONLY[name]))
        refuse(name, f"can only be {allowed} here: what is drawn is what is trained on; leave it out")


def read_list(given: Mapping[str, Any], name: str) -> list[Any]:
    found = given.get(name)
    if not isinstance(found, list):
        refuse(name, "must be a list")
    return found


def read_flag(given: Mapping[str, Any], name: str) -> bool:
    found = given.get(name)
    if found is not None and not isinstance(found, bool):
        refuse(name, "must be true or false")
    return bool(found)


def read_limit(given: Mapping[str, Any]) -> int | None:
    """The smaller one, where a client names both."""
    found = []
    for name in ("max_completion_tokens", "max_tokens"):
        limit = given.get(name)
        if limit is None:
            continue
        if type(limit) is not int or limit < 1:
            refuse(name, "must be a whole number of at least 1")
        found.append(limit)
    return min(found, default=None)


def read_stop(given: Any) -> tuple[str, ...]:
    found = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
        refuse("stop", "must be a text, or a list of texts")
    if len(found) > MOST_STOPS or any(len(text) > LONGEST_STOP for text in found):
        refuse("stop", f"may hold {MOST_STOPS} texts of {LONGEST_STOP} characters at most")
    return tuple(sorted({text.encode(errors="replace").decode() for text in found}))


# Messages and tools.


def read_message(given: Any, place: int) -> ChatMessage:
    name = f"messages[{place}]"
    if not isinstance(given, dict):
        refuse(name, 'must be an object: {"role": "user", "content": "…"}')
    role = given.get("role")
    if not isinstance(role, str) or role not in ROLES:
        refuse(f"{name}.role", f"must be one of {', '.join(ROLES)}")
    for gone in ("function_call", "audio"):
        if given.get(gone) is not None:
            refuse(f"{name}.{gone}", "is not known here; messages hold text, and calls are tool_calls")
    calls = given.get("tool_calls") or []
    if calls and role != "assistant":
        refuse(f"{name}.tool_calls", "are an assistant's")
    if not isinstance(calls, list):
        refuse(f"{name}.tool_calls", "must be a list")
    return ChatMessage(
        role=ROLES[role],
        content=read_content(given.get("content"), f"{name}.content", may_miss=role == "assistant"),
        calls=tuple(read_call(call, f"{name}.tool_calls") for call in calls),
    )


def read_content(given: Any, name: str, *, may_miss: bool) -> str:
    """Text, or parts that are all text."""
    if isinstance(given, str):
        return given
    if given is None and may_miss:
        return ""
    if not isinstance(given, list):
        refuse(name, "must be text")
    texts = []
    for part in given:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            refuse(name, 'may hold parts of the type "text" only: this model reads no images, sound or files')
        texts.append(text)
    return "".join(texts)


def read_call(given: Any, name: str) -> Call:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict):
        refuse(
            name, 'are objects: {"id": …, "type": "function", "function": {"name": …, "arguments": "{…}"}}'
        )
    tool, arguments = function.get("name"), function.get("arguments")
    if not isinstance(tool, str) or not isinstance(arguments, str):
        refuse(name, "need a name and arguments, JSON in a text")
    return Call(id=str(given.get("id") or ""), name=tool, arguments=same_arguments(arguments))


def same_arguments(text: str) -> str:
    """same_arguments('{"b":1,  "a":2}') -> '{"a": 2, "b": 1}'; what is not JSON stays as it is."""
    try:
        return one_form(json.loads(text))
    except (ValueError, RecursionError):
        return text


def one_form(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def read_tool(given: Any) -> dict[str, Any]:
    function = given.get("function") if isinstance(given, dict) and given.get("type") == "function" else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        refuse("tools", 'are objects: {"type": "function", "function": {"name": …, "parameters": {…}}}')
    return given
