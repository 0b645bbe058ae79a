"""Serves the model to the programs of a run over OpenAI's and Anthropic's APIs, with a key for each episode.

    endpoint = Endpoint()
    key = endpoint.admit(ask)                  # ask(request) gives a future of the reply
    OpenAI(base_url=endpoint.base_url, api_key=key).chat.completions.create(model="policy", messages=[…])
    endpoint.revoke(key)                       # waiting and later requests get an error

POST /v1/chat/completions, /v1/responses, /v1/messages · GET /v1/models. Each connection has a thread. The size,
the time and the number of connections without a known key are limited (`chat/http_server.py`).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import ClassVar

from foresail.agents.programs.chat_request import ChatRequest, read_request
from foresail.agents.programs.chat_turns import MODEL
from foresail.chat.dialect import CHAT, DIALECTS
from foresail.chat.errors import Refusal
from foresail.chat.http_server import JsonHandler, JsonServer
from foresail.chat.reply import Reply
from foresail.chat.request import read_json

LONGEST_BODY = 1 << 24
SECONDS = 300.0  # that a connection may be silent

Ask = Callable[[ChatRequest], "Future[Reply]"]


def over() -> Refusal:
    return Refusal(
        "this key belongs to no episode under way; a program gets its key when it starts (OPENAI_API_KEY, or "
        "agent.api_key), and it ends with the program's episode",
        status=401,
        code="invalid_api_key",
    )


class Admitted:
    """The open requests of an episode. A client that times out and asks again gets the first request's answer."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.lock = threading.Lock()
        self.answers: dict[ChatRequest, Future[Reply]] = {}  # the latest answer to each request
        self.pending: set[Future[Reply]] = set()
        self.is_over = False

    def answer(self, request: ChatRequest, *, again: bool) -> Reply:
        with self.lock:
            if self.is_over:
                raise over()
            if not again or request not in self.answers:
                self.answers[request] = self.ask(request)
            answer = self.answers[request]
            self.pending.add(answer)
        answer.add_done_callback(self.pending.discard)
        return answer.result()

    def end(self) -> None:
        with self.lock:
            self.is_over = True
        for answer in [*self.pending]:
            with suppress(InvalidStateError):
                answer.set_exception(over())


class Endpoint:
    """Serves on 127.0.0.1, at a free port, until it is closed."""

    def __init__(self) -> None:
        self.admitted: dict[str, Admitted] = {}
        self.server = ChatServer(self)
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, name="endpoint", daemon=True
        )
        self.thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def admit(self, ask: Ask) -> str:
        key = f"sk-{secrets.token_hex(16)}"
        self.admitted[key] = Admitted(ask)
        return key

    def revoke(self, key: str) -> None:
        if (admitted := self.admitted.pop(key, None)) is not None:
            admitted.end()

    def close(self) -> None:
        for key in [*self.admitted]:
            self.revoke(key)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class ChatServer(JsonServer):
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        super().__init__(ChatHandler)


class ChatHandler(JsonHandler):
    server: ChatServer
    timeout = SECONDS
    needs_key = True

    def list_models(self) -> None:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "foresail"}
        self.reply(200, {"object": "list", "data": [model]})

    def answer(self) -> None:
        admitted = self.server.endpoint.admitted.get(self.key)  # before the body is read
        if admitted is None:
            raise over()
        self.let_in()
        dialect, fields = DIALECTS[self.place], read_json(self.read_body(LONGEST_BODY))
        request = read_request(dialect.to_chat(fields))
        reply = admitted.answer(request, again=self.asks_again)
        if request.stream:  # in one piece: the response has already ended
            events = "".join(dialect.write_events(reply, fields))
            self.send(200, "text/event-stream", events.encode())
        else:
            self.reply(200, dialect.write(reply, fields))

    routes: ClassVar = {
        **dict.fromkeys((f"POST {place}" for place in DIALECTS), answer),
        "GET /v1/models": list_models,
    }

    def refuse(self, refusal: Refusal) -> None:
        self.reply(refusal.status, DIALECTS.get(self.place, CHAT).refuse(refusal))

    @property
    def asks_again(self) -> bool:
        """Whether OpenAI's client says that this is a retry."""
        return self.headers.get("x-stainless-retry-count", "0") != "0"
