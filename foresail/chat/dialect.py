"""The dialects of a conversation over HTTP: how each writes requests, replies and errors.

dialect = DIALECTS["/v1/messages"]
fields = dialect.to_chat(read_json(body))        # of a chat completion request, whichever the dialect
dialect.write(reply, read_json(body))            # {"type": "message", …}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from foresail.chat.anthropic import reply as anthropic_reply
from foresail.chat.anthropic import request as anthropic_request
from foresail.chat.errors import Refusal
from foresail.chat.fields import Fields
from foresail.chat.reply import Reply, write_events, write_reply
from foresail.chat.responses import reply as responses_reply
from foresail.chat.responses import request as responses_request


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """`write` and `write_events` take the reply and the fields of its request, as the client wrote them.

    `names`: fields of a chat completion request, as the dialect calls them.
    """

    to_chat: Callable[[Fields], dict[str, Any]]
    write: Callable[[Reply, Fields], dict[str, Any]]
    write_events: Callable[[Reply, Fields], Iterator[str]]
    write_error: Callable[[Refusal], dict[str, Any]]
    names: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, refusal: Refusal) -> dict[str, Any]:
        """The error, with the field that is wrong under the dialect's own name."""
        param = refusal.param or ""
        name = re.split(r"[.\[]", param)[0]
        if (own := self.names.get(name)) is not None and refusal.message.startswith(name):
            message, param = own + refusal.message[len(name) :], own + param[len(name) :]
            refusal = Refusal(message, status=refusal.status, code=refusal.code, param=param)
        return self.write_error(refusal)


def chat_events(reply: Reply, fields: Fields) -> Iterator[str]:
    options = fields.get("stream_options") or {}
    return write_events(reply, with_usage=bool(options.get("include_usage")))


CHAT = Dialect(
    to_chat=dict,
    write=lambda reply, _: write_reply(reply),
    write_events=chat_events,
    write_error=Refusal.to_json,
)
RESPONSES = Dialect(
    to_chat=responses_request.to_chat,
    write=responses_reply.write_response,
    write_events=responses_reply.write_events,
    write_error=Refusal.to_json,
    names={"messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format"},
)
ANTHROPIC = Dialect(
    to_chat=anthropic_request.to_chat,
    write=lambda reply, _: anthropic_reply.write_message(reply),
    write_events=lambda reply, _: anthropic_reply.write_events(reply),
    write_error=anthropic_reply.write_error,
    names={"stop": "stop_sequences"},
)
DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": ANTHROPIC,
}
