"""The server by itself; its limits are tried on the real endpoint, in tests/agents/test_endpoint_limits.py."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from foresail.chat.errors import Refusal
from foresail.chat.http_server import JsonHandler, JsonServer


class Doubler(JsonHandler):
    timeout = 20.0

    def double(self) -> None:
        number = json.loads(self.read_body(100))
        if not isinstance(number, int):
            raise Refusal("send a number", param="number")
        self.reply(200, {"double": 2 * number})

    def health(self) -> None:
        self.reply(200, {"ok": True})

    routes: ClassVar = {"POST /double": double, "GET /health": health}


@pytest.fixture
def server() -> Iterator[JsonServer]:
    server = JsonServer(Doubler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_a_connection_serves_many_requests(server: JsonServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    for number in range(5):
        assert ask(connection, "POST", "/double", str(number).encode()) == (200, {"double": 2 * number})
        assert ask(connection, "GET", "/health/?x=y") == (200, {"ok": True})
    connection.close()


def test_what_is_refused_has_a_record(server: JsonServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    status, record = ask(connection, "POST", "/double", b'"a"')
    assert status == 400 and record["error"]["message"] == "send a number"
    assert record["error"]["param"] == "number" and record["error"]["type"] == "invalid_request_error"
    status, record = ask(connection, "POST", "/triple", b"3")
    assert status == 404 and "there are POST /double, GET /health" in record["error"]["message"]
    connection.close()
