"""OpenAI's chat completion request, as a record: parse_request(read_json(body)).messages[0].content -> "2+2?"

All fields of the interface are parsed, and some that other servers add; the caller decides which it ignores or
refuses. Messages keep role, text and tool calls in one normal form, so that equal messages compare equal. A
malformed field raises a `Refusal` that names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError

from foresail.chat.errors import Refusal
from foresail.records import Role

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
MAX_STOPS, MAX_STOP_CHARACTERS = 4, 64


def malformed(text: str) -> PydanticCustomError:
    return PydanticCustomError("malformed", text)


def expects(text: str) -> WrapValidator:
    """Replaces pydantic's message for a value of the wrong type by `text`."""

    def validate(value: Any, validator: Callable[[Any], Any]) -> Any:
        try:
            return validator(value)
        except ValidationError:
            raise malformed(text) from None

    return WrapValidator(validate)


def one_form(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def same_arguments(text: str) -> str:
    """same_arguments('{"b":1,  "a":2}') -> '{"a": 2, "b": 1}'; what is not JSON stays as it is."""
    try:
        return one_form(json.loads(text))
    except (ValueError, RecursionError):
        return text


class WireRecord(BaseModel):
    model_config = ConfigDict(frozen=True)


# Messages.


class FunctionCall(WireRecord):
    """`arguments` is JSON in a text, in one form."""

    name: str
    arguments: Annotated[str, AfterValidator(same_arguments)]


class ChatToolCall(WireRecord):
    id: Annotated[str, BeforeValidator(lambda id: str(id or ""))] = ""
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(WireRecord):
    role: Role
    content: str = Field(default=None, validate_default=True)
    tool_calls: Annotated[
        tuple[ChatToolCall, ...],
        expects(
            'must be a list of objects: {"id": …, "type": "function", "function": {"name": …, "arguments": "{…}"}}'
        ),
        BeforeValidator(lambda calls: calls or ()),
    ] = ()

    @field_validator("role", mode="before")
    @classmethod
    def read_role(cls, role: Any) -> Role:
        if not isinstance(role, str) or role not in ROLES:
            raise malformed(f"must be one of {', '.join(ROLES)}")
        return ROLES[role]

    @field_validator("content", mode="before")
    @classmethod
    def read_content(cls, content: Any, info: ValidationInfo) -> str:
        """Text, or parts that are all text; an assistant's may be missing."""
        if isinstance(content, str):
            return content
        if content is None and info.data.get("role") == "assistant":
            return ""
        if not isinstance(content, list):
            raise malformed("must be text")
        texts = []
        for part in content:
            text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            if not isinstance(text, str):
                raise malformed(
                    'may hold parts of the type "text" only: this model reads no images, sound or files'
                )
            texts.append(text)
        return "".join(texts)

    @field_validator("tool_calls")
    @classmethod
    def check_caller(cls, calls: tuple[ChatToolCall, ...], info: ValidationInfo) -> tuple[ChatToolCall, ...]:
        if calls and info.data.get("role", "assistant") != "assistant":
            raise malformed("are an assistant's")
        return calls


def check_message(message: Any) -> Any:
    if isinstance(message, ChatMessage):
        return message
    if not isinstance(message, dict):
        raise malformed('must be an object: {"role": "user", "content": "…"}')
    for outdated in ("function_call", "audio"):
        if message.get(outdated) is not None:
            raise malformed(f"holds {outdated}, which is not known here: messages hold text and tool_calls")
    return message


def check_messages(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    if not messages or messages[-1].role == "assistant":
        raise malformed(
            "must end with a message of the user, the system or a tool, to which there is an answer"
        )
    return messages


# Tools and options.


class Function(WireRecord):
    model_config = ConfigDict(extra="allow")

    name: str


class Tool(WireRecord):
    """A tool. Further fields are for the chat template."""

    model_config = ConfigDict(extra="allow")

    type: Literal["function"]
    function: Function


class StreamOptions(WireRecord):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


def read_stop(stop: Any) -> tuple[str, ...]:
    texts = [stop] if isinstance(stop, str) else [] if stop is None else stop
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise malformed("must be a text, or a list of texts")
    if len(texts) > MAX_STOPS or any(len(text) > MAX_STOP_CHARACTERS for text in texts):
        raise malformed(f"may hold {MAX_STOPS} texts of {MAX_STOP_CHARACTERS} characters at most")
    return tuple(sorted({text.encode(errors="replace").decode() for text in texts}))


Flag = Annotated[bool | None, Field(strict=True), expects("must be true or false")]
Limit = Annotated[
    Annotated[int, Field(strict=True, ge=1)] | None, expects("must be a whole number of at least 1")
]
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Penalty = Annotated[Number, Field(ge=-2, le=2)]


class ChatCompletionRequest(WireRecord):
    """Unknown fields stay in `model_extra`."""

    model_config = ConfigDict(extra="allow")

    messages: Annotated[
        tuple[Annotated[ChatMessage, BeforeValidator(check_message)], ...], AfterValidator(check_messages)
    ]
    tools: Annotated[
        tuple[Tool, ...],
        expects(
            'must be a list of objects: {"type": "function", "function": {"name": …, "parameters": {…}}}'
        ),
        BeforeValidator(lambda tools: tools or ()),
    ] = ()
    model: str | None = None
    max_completion_tokens: Limit = None
    max_tokens: Limit = None
    stop: Annotated[tuple[str, ...], BeforeValidator(read_stop)] = ()
    logprobs: Flag = None
    top_logprobs: Annotated[Whole, Field(ge=0, le=20)] | None = None
    stream: Flag = None
    stream_options: StreamOptions | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: Flag = None
    response_format: dict[str, Any] | None = None
    n: Annotated[Whole, Field(ge=1, le=128)] | None = None
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    logit_bias: dict[str, Annotated[Number, Field(ge=-100, le=100)]] | None = None
    seed: Whole | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    store: Flag = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    # Of other servers.
    top_k: Whole | None = None
    min_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[Number, Field(gt=0)] | None = None
    best_of: Annotated[Whole, Field(ge=1)] | None = None

    @property
    def token_limit(self) -> int | None:
        """The smaller one, where a client names both."""
        limits = [limit for limit in (self.max_completion_tokens, self.max_tokens) if limit is not None]
        return min(limits, default=None)


# From bytes to the record.


def read_json(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except RecursionError:
        raise Refusal("the request is nested too deeply") from None
    except ValueError as error:  # also: bytes that are no text, a number of ten thousand digits
        raise Refusal(f"the request is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise Refusal('a request is a JSON object: {"model": …, "messages": […]}')
    return fields


def parse_request(fields: dict[str, Any]) -> ChatCompletionRequest:
    try:
        return ChatCompletionRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise refused_field(first["loc"], first["type"], first["msg"]) from None


def refused_field(place: tuple[str | int, ...], kind: str, message: str) -> Refusal:
    """refused_field(("messages", 0, "content"), "malformed", "must be text") names messages[0].content."""
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)[1:]
    texts = {"missing": "is missing", "tuple_type": "must be a list", "list_type": "must be a list"}
    return Refusal(f"{name} {texts.get(kind) or message.replace('Input should', 'should')}", param=name)
