"""The model behind OpenAI's interface, for the programs of a run: on this machine, with a key for each episode.

    endpoint = Endpoint()
    key = endpoint.admit(ask)                  # ask(request) gives a future of the reply
    OpenAI(base_url=endpoint.base_url, api_key=key).chat.completions.create(model="policy", messages=[…])
    endpoint.revoke(key)                       # whoever waits, or comes later, is told that the episode is over

POST /v1/chat/completions · GET /v1/models. A thread for each connection: they mostly wait. Before a key is known,
what a connection may send and how long it may take are bounded (`http_limits.py`), and so is the number of such
connections.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any

from foresail.agents.http_limits import BadLength, LimitedHandler
from foresail.agents.programs.chat_reply import MODEL, Reply, write_events, write_reply
from foresail.agents.programs.chat_wire import ChatRequest, Refusal, read_request

LONGEST_BODY = 1 << 24
SECONDS = 300.0  # that a connection may say nothing
MOST_STRANGERS = 1024  # connections that have not shown a key; more are closed
CHAT, MODELS = "/v1/chat/completions", "/v1/models"

Ask = Callable[[ChatRequest], "Future[Reply]"]


def over() -> Refusal:
    return Refusal(
        "this key belongs to no episode under way; a program gets its key when it starts (OPENAI_API_KEY, or "
        "agent.api_key), and it ends with the program's episode",
        status=401,
        code="invalid_api_key",
    )


class Admitted:
    """An episode's way in. A client that lost patience and asks again gets the answer that is on its way."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.lock = threading.Lock()
        self.answers: dict[ChatRequest, Future[Reply]] = {}  # the last to each
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


class ChatServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.strangers: set[Handler] = set()
        super().__init__(("127.0.0.1", 0), Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return len(self.strangers) < MOST_STRANGERS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that goes away in the middle of a word is no news."""


class Handler(LimitedHandler):
    server: ChatServer
    timeout = SECONDS
    may_wait = False

    def setup(self) -> None:
        super().setup()
        self.server.strangers.add(self)

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.server.strangers.discard(self)

    def do_GET(self) -> None:
        if self.place == MODELS:
            model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "foresail"}
            self.reply(200, {"object": "list", "data": [model]})
        else:
            self.refuse(self.nowhere())

    def do_POST(self) -> None:
        try:
            if self.place != CHAT:
                raise self.nowhere()
            admitted = self.find_episode()
            request = read_request(self.read_body(LONGEST_BODY))
            answer = admitted.answer(request, again=self.asks_again)
        except BadLength as error:
            self.refuse(Refusal(str(error), status=error.status))
        except Refusal as refusal:
            self.refuse(refusal)
        else:
            if request.stream:
                self.stream(answer, with_usage=request.with_usage)
            else:
                self.reply(200, write_reply(answer, int(time.time())))

    def find_episode(self) -> Admitted:
        """By its key, before anything of the body is read."""
        admitted = self.server.endpoint.admitted.get(self.key)
        if admitted is None:
            raise over()
        self.server.strangers.discard(self)
        self.may_wait = True
        return admitted

    @property
    def place(self) -> str:
        return self.path.partition("?")[0].rstrip("/")

    @property
    def key(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ").strip()

    @property
    def asks_again(self) -> bool:
        """Whether OpenAI's client says that it sent this request before, and gave up waiting."""
        return self.headers.get("x-stainless-retry-count", "0") != "0"

    def nowhere(self) -> Refusal:
        return Refusal(
            f"there is nothing at {self.command} {self.path[:100]}; there are POST {CHAT} and GET {MODELS}",
            status=404,
        )

    def refuse(self, refusal: Refusal) -> None:
        self.reply(refusal.status, refusal.to_json())

    def reply(self, status: int, content: dict[str, Any]) -> None:
        self.send(status, "application/json", json.dumps(content).encode())

    def stream(self, reply: Reply, *, with_usage: bool) -> None:
        """All of it at once: the response has ended when its first words are sent."""
        events = "".join(write_events(reply, int(time.time()), with_usage=with_usage))
        self.send(200, "text/event-stream", events.encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library finds wrong with a request, in OpenAI's form."""
        self.close_connection = self.has_refused = True
        if self.request_version == "HTTP/0.9":  # which knows no headers
            return
        self.refuse(Refusal(message or f"HTTP status {code}", status=code))
