"""The formats of tool calls and their results.

`Hermes` is what Qwen and Hermes models are trained on: JSON in `<tool_call>`, several in a turn, and results as
messages. `Tags` is plain text in a tag of the tool's name; the closing tag ends the turn, and the result follows
it.

    Hermes().parse('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>') -> [ToolCall("add", {"a": 1})]
    Tags([search]).parse("I will look. <search>Paris</search>") -> [ToolCall("search", {"query": "Paris"})]

Text between `<think>` and `</think>` holds no calls. A call that cannot be parsed becomes a MalformedCall, whose
text tells the model what to correct. A turn without calls is the final answer. Parsing takes time linear in the
text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from foresail.agents.environment import Observation
from foresail.agents.tools.call_json import SHOWN, BadJSON, end_of_space, read_value
from foresail.agents.tools.markup import THINK, THINK_END, Marker, find_markers, neutralise
from foresail.agents.tools.tool import Tool
from foresail.records import Message

MAX_CALLS = 32  # in a turn; later ones are ignored


class ToolCall(NamedTuple):
    name: str
    arguments: Mapping[str, Any]


class MalformedCall(NamedTuple):
    why: str  # one line, for the model


TOO_MANY = MalformedCall(f"more than {MAX_CALLS} calls in one turn; those after them were not read")


class CallFormat(Protocol):
    """A format of calls and results."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn."""

    def parse(self, response: str) -> list[ToolCall | MalformedCall]:
        """The calls of a turn, in order; none in the final answer."""

    def write(self, call: ToolCall) -> str:
        """A call as text: `parse(write(call))` is the call."""

    def observe(self, results: Sequence[str]) -> Observation:
        """The results of all calls as the model sees them; markup in them is broken."""

    def instructions(self, tools: Sequence[Tool]) -> str:
        """The description of tools and format, for chat templates without one."""


class Read(NamedTuple):
    """A call, the index of the first marker after it, and whether it was closed."""

    next: int
    call: ToolCall | MalformedCall
    closed: bool


class Hermes:
    """JSON in `<tool_call>`."""

    OPEN, CLOSE = "<tool_call>", "</tool_call>"
    MARKERS = (OPEN, CLOSE, "<tool_response>", "</tool_response>", THINK, THINK_END)

    @property
    def stop(self) -> tuple[str, ...]:
        return ()  # a turn may have several calls

    def parse(self, response: str) -> list[ToolCall | MalformedCall]:
        markers = find_markers(response, (self.OPEN, self.CLOSE, THINK, THINK_END))
        calls: list[ToolCall | MalformedCall] = []
        at, unclosed = 0, 0
        while at < len(markers):
            marker = markers[at]
            at += 1
            if marker.text == THINK:
                at = behind_thinking(markers, at)
            elif marker.text == THINK_END:  # thinking that began in the prompt ends here
                calls, unclosed = [], 0
            elif len(calls) >= MAX_CALLS:
                calls[MAX_CALLS:] = [TOO_MANY]
            elif marker.text == self.OPEN:
                at, call, closed = self._read(response, markers, at)
                unclosed += not closed
                calls.append(call)
            elif unclosed:  # of a call that was already reported
                unclosed -= 1
            else:
                calls.append(MalformedCall("there is a closing tool_call tag without an opening one"))
        return calls

    def _read(self, response: str, markers: Sequence[Marker], at: int) -> Read:
        """The call after the opening marker `at - 1`, parsed as JSON: an argument may contain `</tool_call>`."""
        try:
            value, end = read_value(response, markers[at - 1].end)
        except BadJSON as error:
            return self._refuse(markers, at, f"what is in the tool_call tags is not JSON: {error}")
        end, first = end_of_space(response, end), at
        while at < len(markers) and markers[at].start < end:
            at += 1
        if at < len(markers) and markers[at].start == end and markers[at].text == self.CLOSE:
            return Read(at + 1, to_call(value), True)
        if any(marker.text == THINK_END for marker in markers[first:at]):  # thinking that began in the prompt
            return self._refuse(markers, first, "")
        more = response[end : end + SHOWN].partition("<")[0]
        return self._refuse(
            markers, at, f"there is more than one JSON object in the tool_call tags: {more!r}"
        )

    def _refuse(self, markers: Sequence[Marker], at: int, why: str) -> Read:
        """A malformed call, up to its closing tag if that comes before the next opening one."""
        if at < len(markers) and markers[at].text == self.CLOSE:
            return Read(at + 1, MalformedCall(why), True)
        return Read(at, MalformedCall("a tool_call tag is not closed"), False)

    def write(self, call: ToolCall) -> str:
        written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
        return f"{self.OPEN}\n{written}\n{self.CLOSE}"

    def observe(self, results: Sequence[str]) -> Observation:
        shown = [neutralise(result, self.MARKERS) for result in results]
        return Observation(messages=tuple(Message(role="tool", content=text) for text in shown))

    def instructions(self, tools: Sequence[Tool]) -> str:
        listed = "\n".join(json.dumps(tool.schema(), ensure_ascii=False) for tool in tools)
        example = ToolCall(tools[0].name, dict.fromkeys(tools[0].parameters.get("required", ()), "…"))
        return (
            f"You may call these tools:\n<tools>\n{listed}\n</tools>\n"
            f"Write each call as JSON with its name and arguments, between tags of its own:\n{self.write(example)}"
        )


def to_call(value: Any) -> ToolCall | MalformedCall:
    """to_call({"name": "add", "arguments": {"a": 1}}) -> ToolCall("add", {"a": 1})."""
    if not isinstance(value, dict):
        return MalformedCall(f"a call is a JSON object, not {kind_of(value)}")
    if missing := [key for key in ("name", "arguments") if key not in value]:
        return MalformedCall(f'a call has "name" and "arguments"; {" and ".join(missing)} is missing')
    if unknown := [key for key in value if key not in ("name", "arguments")]:
        return MalformedCall(f'a call has "name" and "arguments", and no {unknown[0][:SHOWN]!r}')
    name, arguments = value["name"], value["arguments"]
    if not isinstance(name, str):
        return MalformedCall(f"the name of a call is a string, not {kind_of(name)}")
    if not isinstance(arguments, dict):
        return MalformedCall(f"the arguments of {name[:SHOWN]!r} are a JSON object, not {kind_of(arguments)}")
    return ToolCall(name, arguments)


def kind_of(value: Any) -> str:
    """kind_of([1]) -> "a list"."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    kinds = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return kinds[type(value)]


def behind_thinking(markers: Sequence[Marker], at: int) -> int:
    """The index of the marker after `</think>`; the number of markers if there is none."""
    while at < len(markers) and markers[at].text != THINK_END:
        at += 1
    return at + 1


class Tags:
    """A tag for each tool; its exact content is the tool's one argument."""

    RESULT, RESULT_END = "<result>", "</result>"

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.arguments = {tool.name: only_argument(tool) for tool in tools}
        if "result" in self.arguments or "think" in self.arguments:
            raise ValueError("<result> and <think> have a meaning already; give the tool another name")
        self.opens = {f"<{name}>": name for name in self.arguments}
        self.closes = {f"</{name}>": name for name in self.arguments}
        self.markers = (*self.opens, *self.closes, self.RESULT, self.RESULT_END, THINK, THINK_END)

    @property
    def stop(self) -> tuple[str, ...]:
        return tuple(self.closes)

    def parse(self, response: str) -> list[ToolCall | MalformedCall]:
        markers = find_markers(response, (*self.opens, *self.closes, THINK, THINK_END))
        calls: list[ToolCall | MalformedCall] = []
        at = 0
        while at < len(markers):
            marker = markers[at]
            at += 1
            if marker.text == THINK:
                behind = behind_thinking(markers, at)
                if behind > len(markers) and markers[-1].text in self.closes:  # it ended the turn
                    calls.append(
                        MalformedCall("a call is not carried out while thinking; close the think tag first")
                    )
                at = behind
            elif marker.text == THINK_END:  # thinking that began in the prompt ends here
                calls = []
            elif len(calls) >= MAX_CALLS:
                calls[MAX_CALLS:] = [TOO_MANY]
            elif marker.text in self.opens:
                following = markers[at] if at < len(markers) else None
                if following is not None and self.closes.get(following.text) == self.opens[marker.text]:
                    name = self.opens[marker.text]
                    calls.append(
                        ToolCall(name, {self.arguments[name]: response[marker.end : following.start]})
                    )
                    at += 1
                else:
                    calls.append(MalformedCall(explain_open(self.opens[marker.text], following)))
                    at += following is not None and following.text in self.closes
            else:
                name = self.closes[marker.text]
                calls.append(MalformedCall(f"there is a closing {name} tag without an opening one"))
        return calls

    def write(self, call: ToolCall) -> str:
        return f"<{call.name}>{call.arguments[self.arguments[call.name]]}</{call.name}>"

    def observe(self, results: Sequence[str]) -> Observation:
        shown = [neutralise(result, self.markers) for result in results]
        return Observation(text="".join(f"\n{self.RESULT}{text}{self.RESULT_END}\n" for text in shown))

    def instructions(self, tools: Sequence[Tool]) -> str:
        lines = [
            f"<{tool.name}>{self.arguments[tool.name]}</{tool.name}>: {tool.description}" for tool in tools
        ]
        return (
            "You may use these tools by writing, in your answer:\n" + "\n".join(lines) + "\n"
            f"What a tool returns follows in {self.RESULT}…{self.RESULT_END}."
        )


def explain_open(name: str, following: Marker | None) -> str:
    """The error in words, since every marker in a result is broken."""
    if following is None:
        return f"a {name} tag is not closed"
    other = following.text.strip("</>")
    which = "a closing" if following.text.startswith("</") else "an opening"
    return f"a {name} tag is not closed before {which} {other} tag; tags do not nest"


def only_argument(tool: Tool) -> str:
    """The argument that holds a tag's text: the required one, or the only one."""
    properties = list(tool.parameters.get("properties", {}))
    required = list(tool.parameters.get("required", []))
    if len(required) == 1 or (not required and len(properties) == 1):
        return (required or properties)[0]
    raise ValueError(
        f"the tool {tool.name} takes {len(required)} arguments ({', '.join(required or properties)}) and a tag "
        "has one; give the others defaults, or use the format hermes"
    )
