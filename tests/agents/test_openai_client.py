"""The openai package itself against an endpoint, where it is installed."""

from __future__ import annotations

from typing import Any

import pytest
from small_programs import play, user
from small_worlds import TOKENIZER

from foresail.agents.programs.program import Agent

openai: Any = pytest.importorskip("openai")
TOOLS = [
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
]


def client_of(agent: Agent, kind: str = "OpenAI") -> Any:
    return getattr(openai, kind)(base_url=agent.base_url, api_key=agent.api_key)


def test_a_conversation_is_one_record() -> None:
    async def program(agent: Agent) -> str:
        async with client_of(agent, "AsyncOpenAI") as client:
            messages: list[Any] = agent.messages
            for _ in range(3):
                reply = await client.chat.completions.create(
                    model=agent.model, messages=messages, temperature=0.3, max_completion_tokens=4
                )
                assert reply.usage.completion_tokens <= 4
                messages = [*messages, reply.choices[0].message, user("1")]
            assert [model.id async for model in client.models.list()] == ["policy"]
        return reply.choices[0].message.content

    for group in play(program, count=2).values():
        assert not group.failed
        assert [(len(sample.records), sample.turns[-1]) for sample in group.samples] == [(1, 2)] * 3


def test_a_stream_is_one_record_with_what_follows() -> None:
    def program(agent: Agent) -> str:
        with client_of(agent) as client:
            options: dict[str, Any] = {"model": agent.model, "max_tokens": 4, "stream": True}
            stream = client.chat.completions.create(
                messages=agent.messages, stream_options={"include_usage": True}, **options
            )
            chunks = [*stream]
            assert chunks[-1].usage.completion_tokens <= 4
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
            said = {"role": "assistant", "content": text}
            [*client.chat.completions.create(messages=[*agent.messages, said, user("1")], **options)]
        return text

    for group in play(program, count=2).values():
        assert not group.failed
        assert [(len(sample.records), sample.turns[-1]) for sample in group.samples] == [(1, 1)] * 3


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_are_read_and_known_again(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    text = 'So:\n<tool_call>\n{"name": "add", "arguments": {"b": 2, "a": "é"}}\n</tool_call>'
    monkeypatch.setattr(TOKENIZER, "decode", lambda ids, **options: text)

    def program(agent: Agent) -> str:
        with client_of(agent) as client:
            options: dict[str, Any] = {
                "model": agent.model,
                "tools": TOOLS,
                "max_tokens": 3,
                "stream": stream,
            }
            reply = client.chat.completions.create(messages=agent.messages, **options)
            if stream:
                first, last = reply
                delta = first.choices[0].delta
                calls = [call.model_dump(exclude={"index"}) for call in delta.tool_calls]
                message: Any = {"role": "assistant", "content": delta.content, "tool_calls": calls}
                assert last.choices[0].finish_reason == "tool_calls"
            else:
                message = reply.choices[0].message
                calls = [call.model_dump() for call in message.tool_calls]
                assert reply.choices[0].finish_reason == "tool_calls"
            answer = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "4"}
            [*client.chat.completions.create(messages=[*agent.messages, message, answer], **options)]
        return "42"

    for group in play(program, count=2).values():
        assert not group.failed
        assert [(len(sample.records), sample.turns[-1]) for sample in group.samples] == [(1, 1)] * 3


def test_errors_are_the_clients_own() -> None:
    def program(agent: Agent) -> str:
        with client_of(agent) as client:
            with pytest.raises(openai.BadRequestError, match="can only be 1"):
                client.chat.completions.create(model="x", messages=agent.messages, n=2)
            with pytest.raises(openai.BadRequestError) as refused:
                client.chat.completions.create(model="x", messages=[user("1 " * 100)])
            assert refused.value.code == "context_length_exceeded"
            client.chat.completions.create(model="x", messages=agent.messages, logprobs=True)
        with (
            openai.OpenAI(base_url=agent.base_url, api_key="wrong") as client,
            pytest.raises(openai.AuthenticationError),
        ):
            client.chat.completions.create(model="x", messages=agent.messages)
        return "42"

    for group in play(program, count=1).values():
        assert not group.failed, group.verdicts


def test_a_conversation_by_responses_is_one_record() -> None:
    def program(agent: Agent) -> str:
        asked: list[Any] = [*agent.messages]
        options: dict[str, Any] = {"model": agent.model, "max_output_tokens": 4, "store": False}
        with client_of(agent) as client:
            reply = client.responses.create(input=asked, tools=[], **options)
            assert type(reply).model_validate(reply.model_dump(), strict=True).usage.output_tokens <= 4
            asked += [*reply.output, user("1")]
            events = [*client.responses.create(input=asked, stream=True, **options)]
            assert events[0].type == "response.created"
            reply = events[-1].response  # of response.completed or response.incomplete
            client.responses.create(input=[*asked, *reply.output, user("2")], **options)
        return str(reply.output_text)

    for group in play(program, count=2).values():
        assert not group.failed
        assert [(len(sample.records), sample.turns[-1]) for sample in group.samples] == [(1, 2)] * 3
