"""A small HTTP server that answers in JSON: bounded requests (`http_limits.py`), a thread for each connection.

    class Health(JsonHandler):
        timeout = 60.0
        def health(self) -> None:
            self.reply(200, {"ok": True})
        routes: ClassVar = {"GET /health": health}

    JsonServer(Health, port=8600).serve_forever()

Where requests need a key (`needs_key`), at most MAX_STRANGERS connections may be open that have not shown it
(`let_in`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import ThreadingHTTPServer
from typing import Any, ClassVar

from foresail.chat.errors import Refusal
from foresail.chat.http_limits import LimitedHandler

MAX_STRANGERS = 1024  # connections that have not shown a key; more are closed


class JsonServer(ThreadingHTTPServer):
    """`port` 0 takes a free one: read it from `server_port`."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, handler: type[JsonHandler], *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.strangers: set[JsonHandler] = set()
        super().__init__((host, port), handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return len(self.strangers) < MAX_STRANGERS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: that a client disconnects is not worth a message."""


class JsonHandler(LimitedHandler):
    """A route answers by `reply`, or raises a `Refusal`."""

    server: JsonServer
    routes: ClassVar[Mapping[str, Callable[[Any], None]]]  # by method and path: "POST /search"
    needs_key = False

    def setup(self) -> None:
        super().setup()
        if self.needs_key:
            self.may_wait = False
            self.server.strangers.add(self)

    def let_in(self) -> None:
        """The client has shown a key."""
        self.may_wait = True
        self.server.strangers.discard(self)

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.server.strangers.discard(self)

    def do_GET(self) -> None:
        self.route()

    def do_POST(self) -> None:
        self.route()

    def route(self) -> None:
        answer = self.routes.get(f"{self.command} {self.place}")
        try:
            if answer is None:
                raise Refusal(
                    f"there is nothing at {self.command} {self.path[:100]}; there are {', '.join(self.routes)}",
                    status=404,
                )
            answer(self)
        except Refusal as refusal:
            self.refuse(refusal)

    @property
    def place(self) -> str:
        """The path without its query; empty before the request line is read."""
        return str(getattr(self, "path", "")).partition("?")[0].rstrip("/")

    @property
    def key(self) -> str:
        """As OpenAI's clients send it, or Anthropic's."""
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return (bearer or self.headers.get("x-api-key", "")).strip()

    def refuse(self, refusal: Refusal) -> None:
        self.reply(refusal.status, refusal.to_json())

    def reply(self, status: int, content: dict[str, Any]) -> None:
        self.send(status, "application/json", json.dumps(content).encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors that the standard library finds, in OpenAI's form."""
        self.close_connection = self.has_refused = True
        if self.request_version != "HTTP/0.9":  # which knows no headers
            self.refuse(Refusal(message or f"HTTP status {code}", status=code))
