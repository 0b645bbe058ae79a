"""Converts chat requests to turns of tokens, and completions to chat replies.

As in other episodes, at most `sampling.max_new_tokens` tokens follow a conversation's first prompt, and the whole
is at most `max_length` long. So a program that writes a longer first prompt than its problem's gets fewer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from foresail.agents.programs.chat_request import ChatRequest
from foresail.agents.programs.conversation import ChatTurn, Conversation
from foresail.agents.tools.call_formats import Hermes, ToolCall
from foresail.agents.tools.markup import THINK_END, neutralise
from foresail.chat.errors import Refusal
from foresail.chat.reply import Reply, cut_at, first_stop
from foresail.chat.request import ChatMessage, ChatToolCall, FunctionCall, one_form
from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.noise import branch_key
from foresail.engine.request import Completion
from foresail.records import Message
from foresail.rewards.thinking import open_counter
from foresail.tokenizer.foreign_text import UnwritableText
from foresail.tokenizer.tokenizer import Tokenizer

MODEL = "policy"  # the model's name in replies; requests may use any
HERMES = Hermes()


class NoRoom(Refusal):
    """The episode has come to a limit; a program that then raises has not failed."""


def place_turn(
    asked: ChatRequest,
    conversation: Conversation,
    entry: PromptedProblem,
    *,
    tokenizer: Tokenizer,
    stop_ids: Sequence[int],
    max_turns: int,
    max_new_tokens: int,
    max_length: int,
) -> ChatTurn:
    """The turn that will answer a request; raises Refusal if there can be none."""
    if len(conversation.turns) >= max_turns:
        raise NoRoom(
            f"the episode has had its {max_turns} requests (environment.max_turns); end the program",
            code="max_turns_exceeded",
        )
    continued = conversation.find(asked)
    try:
        if continued is None:
            parent, prompt = None, first_prompt(asked, entry, tokenizer)
        else:
            parent, new = continued
            prompt = next_prompt(parent, new, tokenizer, stop_ids)
    except UnwritableText as error:  # the model may have caused it
        raise NoRoom(str(error), code="unwritable_messages", param="messages") from error
    except ValueError as error:
        raise Refusal(str(error), param="messages") from error
    if parent is None:
        limit, behind = min(max_new_tokens, max_length - len(prompt)), 0
    else:
        limit, behind = parent.limit, len(prompt) - parent.root_tokens
    if behind >= limit:
        raise NoRoom(
            f"the messages come to {len(prompt)} tokens and leave no room for a response: a conversation may have "
            f"{max_length} tokens (max_prompt_tokens + sampling.max_new_tokens), and {max_new_tokens} of them "
            "behind its first prompt",
            code="context_length_exceeded",
            param="messages",
        )
    return conversation.begin(asked, prompt, parent=parent, limit=limit)


def first_prompt(asked: ChatRequest, entry: PromptedProblem, tokenizer: Tokenizer) -> list[int]:
    """The prompt of a new conversation; the problem's own prompt is tokenised already."""
    messages = [to_message(message) for message in asked.messages]
    if not asked.tools and messages == [*entry.problem.prompt]:
        return [*entry.ids]
    return tokenizer.encode_request(messages, json.loads(asked.tools or "[]"))


def next_prompt(
    turn: ChatTurn, new: Sequence[ChatMessage], tokenizer: Tokenizer, stop_ids: Sequence[int]
) -> list[int]:
    """All tokens of a turn, and those between it and the next."""
    messages = [to_message(message) for message in new]
    return [*turn.ids, *tokenizer.encode_next_turn(messages, ended=turn.ids[-1] in stop_ids)]


def to_message(message: ChatMessage) -> Message:
    """As the chat template takes it. Markup in a tool's text is broken: anybody may have written it."""
    text = with_calls(message) if message.tool_calls else message.content
    return Message(
        role=message.role, content=neutralise(text, HERMES.MARKERS) if message.role == "tool" else text
    )


def to_reply(asked: ChatRequest, completion: Completion, tokenizer: Tokenizer) -> Reply:
    request, ids = completion.request, completion.ids
    whole = tokenizer.decode(ids, skip_special_tokens=True)
    text = cut_at(whole, asked.stop)
    name = f"{branch_key(request.key, request.prompt, 0) & (2**64 - 1):016x}"
    message = split_calls(text, name) if asked.reads_calls else ChatMessage(role="assistant", content=text)
    return Reply(
        id=name,
        model=MODEL,
        created=int(time.time()),
        stop_text=first_stop(whole, asked.stop),
        message=message,
        finish="tool_calls" if message.tool_calls else "length" if completion.finish == "length" else "stop",
        prompt_tokens=len(request.prompt),
        completion_tokens=len(ids),
        thinking_tokens=count_thinking(request.prompt, ids, tokenizer),
        logprobs=tuple(
            (tokenizer.decode([token]), logprob)
            for token, logprob in zip(ids, completion.logprobs, strict=True)
        )
        if asked.logprobs
        else None,
    )


def count_thinking(prompt: Sequence[int], ids: Sequence[int], tokenizer: Tokenizer) -> int:
    """0 where the chat template knows no thinking."""
    counter = open_counter(tokenizer)
    return 0 if counter is None else counter.count(prompt, ids)[0]


def split_calls(text: str, reply_id: str) -> ChatMessage:
    """The text before the first call, and the calls; text with a malformed call stays text."""
    calls = HERMES.parse(text)
    readable = [call for call in calls if isinstance(call, ToolCall)]
    if not calls or len(readable) < len(calls):
        return ChatMessage(role="assistant", content=text)
    first = text.find(HERMES.OPEN, text.rfind(THINK_END) + 1)
    return ChatMessage(
        role="assistant",
        content=text[: max(0, first)].rstrip(),
        tool_calls=tuple(
            ChatToolCall(
                id=f"call_{reply_id}_{number}",
                function=FunctionCall(name=call.name, arguments=one_form(dict(call.arguments))),
            )
            for number, call in enumerate(readable)
        ),
    )


def with_calls(message: ChatMessage) -> str:
    """A message's text with its calls, as the model would have written them."""
    written = [message.content] if message.content else []
    for function in [call.function for call in message.tool_calls]:
        try:
            arguments = json.loads(function.arguments)
        except (ValueError, RecursionError):
            arguments = None
        known = arguments if isinstance(arguments, dict) else {"arguments": function.arguments}
        written.append(HERMES.write(ToolCall(function.name, known)))
    return "\n".join(written)
