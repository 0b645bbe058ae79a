"""The step `tool_calls`: drops conversations whose tool calls could not have been made, or have no answer.

    [[step]]
    name = "tool_calls"
    strict = true                # arguments that a tool does not name are mistakes
    cut = true                   # keep what stands before the first mistake

Dropped: broken_tools, unknown_tool, wrong_arguments, placeholder, unanswered_call, answer_without_call. Calls whose
arguments are no JSON are dropped when the row is read (no_conversation).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from foresail.curate.conversations.cut import CUT, cut_document
from foresail.curate.conversations.schema import argument_schema, mistakes
from foresail.curate.document import Document, Drop
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.row import MESSAGES
from foresail.curate.step import Outcome, StepFunction
from foresail.recipe.tables.part import Part

# a value that stands for another one: <city>, {{city}}, ${CITY}, [INSERT CITY], YOUR_API_KEY, TODO
PLACEHOLDER = re.compile(
    r"<[A-Za-z][\w .-]{1,40}>|\{\{[^{}]{1,60}\}\}|\$\{\w{1,60}\}|\[(?:insert|your|enter)\b[^\[\]]{0,60}\]"
    r"|(?:insert|enter|your|my)[_ -](?:\w{1,20}[_ -]){0,3}"
    r"(?:key|token|password|id|name|here|value|secret|email|address)"
    r"|(?:place_?holder|todo|tbd|fixme|xxx+)",
    re.IGNORECASE,
)
LONGEST_PLACEHOLDER = 80


class ToolCalls(Part):
    """Drops conversations with tool calls that do not fit the tools, or without answers."""

    takes: ClassVar[Holds] = ("conversations",)

    strict: bool = Field(
        False,
        description="true: arguments that a tool's schema does not name are mistakes; "
        "false: only where its additionalProperties is false",
    )
    ends_in_call: bool = Field(False, description="calls of the last message need no answer")
    placeholders: bool = Field(False, description="true: values such as <city> or YOUR_API_KEY are allowed")
    cut: bool = Field(False, description=f"true: conversations are {CUT}; false: they are dropped")

    def open(self) -> StepFunction:
        return CallCheck(self)


class Fault(NamedTuple):
    """`place`: of the message; 0 where it is of the tools."""

    place: int
    reason: str
    detail: str


@dataclass(frozen=True)
class CallCheck:
    settings: ToolCalls

    def __call__(self, document: Document) -> Outcome:
        assert document.row is not None
        fault = next(self.faults(document.row), None)
        if fault is None:
            return document
        if self.settings.cut and (left := cut_document(document, fault.place, fault.reason)) is not None:
            return left
        return Drop(fault.reason, fault.detail)

    def faults(self, row: Mapping[str, Any]) -> Iterator[Fault]:
        messages, tools = row[MESSAGES], row.get("tools") or ()
        functions: dict[str, Mapping[str, Any]] = {}
        for tool in tools:
            function = tool.get("function")
            name = function.get("name") if isinstance(function, Mapping) else None
            if not isinstance(name, str) or not name:
                yield Fault(0, "broken_tools", f"a tool has no name: {excerpt(tool)}")
            elif name in functions:
                yield Fault(0, "broken_tools", f"two tools are called {name}")
            else:
                functions[name] = function
        open_calls: list[Mapping[str, Any]] = []
        called_at = 0
        for place, message in enumerate(messages):
            if message["role"] == "tool":
                yield from answer_faults(place, message, open_calls)
                continue
            if open_calls:
                yield Fault(called_at, "unanswered_call", described(open_calls))
            open_calls = [*message.get("tool_calls", ())]
            called_at = place
            earlier = "\n".join(one["content"] for one in messages[:place]) if open_calls else ""
            for call in open_calls:
                yield from self.call_faults(place, call["function"], functions, earlier)
            ids = [call["id"] for call in open_calls if "id" in call]
            if len({*ids}) < len(ids):
                yield Fault(place, "unanswered_call", f"two calls have one id: {', '.join(ids)}")
        if open_calls and not self.settings.ends_in_call:
            yield Fault(called_at, "unanswered_call", described(open_calls))

    def call_faults(
        self, place: int, call: Mapping[str, Any], functions: Mapping[str, Mapping[str, Any]], earlier: str
    ) -> Iterator[Fault]:
        name = call["name"]
        if name not in functions:
            known = ", ".join([*functions][:10]) or "none"
            yield Fault(place, "unknown_tool", f"{name} is called; the tools are {known}")
            return
        wrong = mistakes(call["arguments"], argument_schema(functions[name]), self.settings.strict)
        if wrong:
            yield Fault(place, "wrong_arguments", f"{name}: {'; '.join(wrong[:3])}")
        if not self.settings.placeholders:
            for text in texts_in(call["arguments"]):
                if is_placeholder(text) and text not in earlier:
                    yield Fault(place, "placeholder", f"{name}: {excerpt(text)}")


def answer_faults(
    place: int, message: Mapping[str, Any], open_calls: list[Mapping[str, Any]]
) -> Iterator[Fault]:
    """Takes the call that a tool message answers from `open_calls`; all of them where it has a list of as many."""
    if not open_calls:
        yield Fault(place, "answer_without_call", excerpt(message["content"]))
        return
    answered, name = message.get("tool_call_id"), message.get("name")
    if answered is not None and any("id" in call for call in open_calls):
        match = next((call for call in open_calls if call.get("id") == answered), None)
    elif name is not None:
        match = next((call for call in open_calls if call["function"]["name"] == name), None)
    else:
        match = open_calls[0]
        if len(open_calls) > 1 and is_list_of(message["content"], len(open_calls)):
            open_calls.clear()
            return
    if match is None:
        yield Fault(
            place, "answer_without_call", f"{answered or name} answers none of {described(open_calls)}"
        )
    else:
        open_calls.remove(match)


def described(calls: Sequence[Mapping[str, Any]]) -> str:
    names = [f"{call['function']['name']}{' ' + call['id'] if 'id' in call else ''}" for call in calls]
    return ", ".join(names[:5])


def is_list_of(content: str, size: int) -> bool:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and len(value) == size


def is_placeholder(text: str) -> bool:
    plain = text.strip().strip("\"'")
    return len(plain) <= LONGEST_PLACEHOLDER and PLACEHOLDER.fullmatch(plain) is not None


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(item)


def excerpt(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else f"{text[:99]}…"
