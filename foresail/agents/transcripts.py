"""Episodes as conversations: calls and results as messages in OpenAI's form, or as the model wrote them.

    transcripts = Transcripts(tools, format)
    transcripts.note("sums:7", 3, observations)              # as the episode ends
    transcripts.take("sums:7", 3) -> what the environment said, as JSON
    transcripts.conversation(("I add. <calculator>1+1</calculator>", "It is 2."), said, as_written=False)
        -> [{"role": "assistant", "content": "I add.", "tool_calls": […]}, {"role": "tool", …}, …], ""

An episode that has no such form is named by a reason: `failed_call` (a call was malformed, unknown or failed),
`unfinished` (the last turn calls), `unmatched` (not one result for each call), `beside_calls` (text behind a call,
which the form has no place for), `no_messages` (the environment spoke in the middle of a turn).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foresail.agents.environment import Observation
from foresail.agents.tools.call_formats import CallFormat, Hermes, Tags, ToolCall
from foresail.agents.tools.tool import Tool

Said = dict[str, Any]  # {"messages": [["tool", "4"]], "text": "", "errors": []}: of one turn
Row = dict[str, Any]
NOTHING: Said = {"messages": [], "text": "", "errors": []}
RESULT = re.compile(
    rf"\n{Tags.RESULT}(.*?){Tags.RESULT_END}\n", re.DOTALL
)  # markup inside of results is broken


@dataclass
class Transcripts:
    """`note` is called where episodes are sampled; `take` gives what it noted once."""

    tools: tuple[Tool, ...] = ()
    format: CallFormat | None = None
    noted: dict[tuple[str, int], list[Said]] = field(default_factory=dict)

    def note(self, problem: str, sample: int, observations: Sequence[Observation]) -> None:
        self.noted[problem, sample] = [*map(to_said, observations)]

    def take(self, problem: str, sample: int) -> list[Said]:
        return self.noted.pop((problem, sample), [])

    def schemas(self) -> list[Row]:
        return [tool.schema() for tool in self.tools]

    def conversation(
        self, responses: Sequence[str], said: Sequence[Said], *, as_written: bool
    ) -> tuple[list[Row], str]:
        """The messages behind the prompt; or none, and the reason."""
        messages: list[Row] = []
        for turn, response in enumerate(responses):
            is_last = turn == len(responses) - 1
            heard = said[turn] if turn < len(said) else NOTHING
            calls = [] if self.format is None else self.format.parse(response)
            if heard["errors"] or not all(isinstance(call, ToolCall) for call in calls):
                return [], "failed_call"
            if is_last and calls:
                return [], "unfinished"
            if as_written or not calls:
                if heard["text"] and not is_last:
                    return [], "no_messages"
                messages.append({"role": "assistant", "content": response})
                messages += [{"role": role, "content": text} for role, text in heard["messages"]]
            else:
                results = self.results(heard)
                words = self.words_before_calls(
                    response, [call for call in calls if isinstance(call, ToolCall)]
                )
                if len(results) != len(calls):
                    return [], "unmatched"
                if words is None:
                    return [], "beside_calls"
                names = [f"call_{turn + 1}_{place}" for place in range(1, len(calls) + 1)]
                made = [call for call in calls if isinstance(call, ToolCall)]
                written = [*map(to_openai, names, made)]
                messages.append({"role": "assistant", "content": words, "tool_calls": written})
                messages += map(to_tool_message, names, made, results)
        return messages, ""

    def results(self, heard: Said) -> list[str]:
        """What came back, call by call."""
        if heard["text"]:
            return RESULT.findall(heard["text"])
        return [text for role, text in heard["messages"] if role == "tool"]

    def words_before_calls(self, response: str, calls: Sequence[ToolCall]) -> str | None:
        """None if there are words behind the first call: OpenAI's form has no place for them."""
        opens = [Hermes.OPEN] if isinstance(self.format, Hermes) else [f"<{call.name}>" for call in calls[:1]]
        assert self.format is not None
        starts = [match.start() for match in re.finditer("|".join(map(re.escape, opens)), response)]
        for start in reversed(starts):  # calls inside of thinking come first, and are none
            if not self.format.parse(response[:start]) and self.format.parse(response[start:]) == [*calls]:
                has_more = behind_calls(response[start:], calls, self.format)
                return None if has_more else response[:start].strip()
        return None


def behind_calls(text: str, calls: Sequence[ToolCall], format: CallFormat) -> str:
    """What of a text that begins with calls is none of them."""
    for call in calls:
        text = text.lstrip()
        if isinstance(format, Hermes):
            start = len(Hermes.OPEN) + len(text[len(Hermes.OPEN) :]) - len(text[len(Hermes.OPEN) :].lstrip())
            try:
                _, end = json.JSONDecoder(strict=False).raw_decode(text, start)
            except ValueError:
                return text
            text = text[end:].lstrip()
            if not text.startswith(Hermes.CLOSE):
                return text
            text = text[len(Hermes.CLOSE) :]
        else:
            written = format.write(call)
            if not text.startswith(written):
                return text
            text = text[len(written) :]
    return text.strip()


def to_said(observation: Observation) -> Said:
    return {
        "messages": [[message.role, message.content] for message in observation.messages],
        "text": observation.text,
        "errors": [use.error for use in observation.uses if use.error],
    }


def to_openai(name: str, call: ToolCall) -> Row:
    function = {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)}
    return {"id": name, "type": "function", "function": function}


def to_tool_message(name: str, call: ToolCall, result: str) -> Row:
    return {"role": "tool", "tool_call_id": name, "name": call.name, "content": result}
