"""The anthropic package itself against an endpoint, where it is installed."""

from __future__ import annotations

from typing import Any

import pytest
from small_programs import play

from foresail.agents.programs.program import Agent

anthropic: Any = pytest.importorskip("anthropic")
TOOLS = [{"name": "add", "input_schema": {"type": "object", "properties": {}}}]


def client_of(agent: Agent) -> Any:
    return anthropic.Anthropic(base_url=agent.anthropic_url, api_key=agent.api_key)


def test_a_conversation_is_one_record() -> None:
    def program(agent: Agent) -> str:
        messages: list[Any] = [*agent.messages]
        with client_of(agent) as client:
            for _ in range(3):
                reply = client.messages.create(model=agent.model, max_tokens=4, messages=messages)
                assert type(reply).model_validate(reply.model_dump(), strict=True).usage.output_tokens <= 4
                messages += [
                    {"role": "assistant", "content": reply.content},
                    {"role": "user", "content": [{"type": "text", "text": "1"}]},
                ]
        return "".join(block.text for block in reply.content if block.type == "text")

    for group in play(program, count=2).values():
        assert not group.failed
        assert [(len(sample.records), sample.turns[-1]) for sample in group.samples] == [(1, 2)] * 3


def test_a_stream_is_one_record_with_what_follows() -> None:
    def program(agent: Agent) -> str:
        options: dict[str, Any] = {"model": agent.model, "max_tokens": 4, "tools": TOOLS}
        with client_of(agent) as client:
            with client.messages.stream(messages=agent.messages, **options) as stream:
                text = "".join(stream.text_stream)
                said = stream.get_final_message()
            assert text == "".join(block.text for block in said.content if block.type == "text")
            again = [*agent.messages, {"role": "assistant", "content": said.content}]
            client.messages.create(messages=[*again, {"role": "user", "content": "1"}], **options)
        return text

    for group in play(program, count=2).values():
        assert not group.failed
        assert [(len(sample.records), sample.turns[-1]) for sample in group.samples] == [(1, 1)] * 3


def test_errors_are_those_of_the_package() -> None:
    def program(agent: Agent) -> float:
        options: dict[str, Any] = {"model": agent.model, "max_tokens": 4}
        with client_of(agent) as client:
            image = {"type": "image", "source": {"type": "url", "url": "http://a.org/b.png"}}
            with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\].content\[0\]"):
                client.messages.create(messages=[{"role": "user", "content": [image]}], **options)
            with pytest.raises(anthropic.AuthenticationError):
                client.with_options(api_key="unknown").messages.create(messages=agent.messages, **options)
            client.messages.create(messages=agent.messages, **options)
        return 1.0

    for group in play(program, count=1).values():
        assert not group.failed
