"""The server itself: whatever a client sends, it gets an answer in OpenAI's form, or its connection is closed."""

from __future__ import annotations

import json
import random
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from small_programs import DIRECT, Refused, post

from foresail.agents.programs.chat_request import ChatRequest
from foresail.agents.programs.endpoint import Endpoint
from foresail.chat.reply import Reply
from foresail.chat.request import ChatMessage

GOOD = json.dumps({"model": "m", "messages": [{"role": "user", "content": "2"}]}).encode()


class Echo:
    """Says what it was asked last; `hold` keeps replies back."""

    def __init__(self) -> None:
        self.asked: list[Future[Reply]] = []
        self.hold = False

    def __call__(self, request: ChatRequest) -> Future[Reply]:
        reply: Future[Reply] = Future()
        message = ChatMessage(role="assistant", content=request.messages[-1].content)
        found = Reply(
            id="x", model="policy", message=message, finish="stop", prompt_tokens=1, completion_tokens=1
        )
        if not self.hold:
            reply.set_result(found)
        self.asked.append(reply)
        return reply


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with closing(Endpoint()) as endpoint:
        yield endpoint


def chat(endpoint: Endpoint, key: str, body: bytes = GOOD, **headers: str) -> Any:
    return json.loads(post(f"{endpoint.base_url}/chat/completions", key, body, **headers))


def test_requests_are_answered_and_models_listed(endpoint: Endpoint, echo: Echo) -> None:
    found = chat(endpoint, endpoint.admit(echo))
    assert found["choices"][0]["message"] == {"role": "assistant", "content": "2", "refusal": None}
    assert found["usage"]["total_tokens"] == 2 and found["object"] == "chat.completion"
    with DIRECT.open(f"{endpoint.base_url}/models") as reply:
        assert [model["id"] for model in json.load(reply)["data"]] == ["policy"]


def test_a_stream_is_the_whole_text_and_its_end(endpoint: Endpoint, echo: Echo) -> None:
    body = json.dumps({**json.loads(GOOD), "stream": True}).encode()
    events = post(f"{endpoint.base_url}/chat/completions", endpoint.admit(echo), body).decode().split("\n\n")
    assert json.loads(events[0].removeprefix("data: "))["choices"][0]["delta"]["content"] == "2"
    assert events[-2:] == ["data: [DONE]", ""]


@pytest.mark.parametrize("place", ["/completions", "/message", "/chat", "/../chat/completions", ""])
def test_other_places_say_what_there_is(endpoint: Endpoint, echo: Echo, place: str) -> None:
    with pytest.raises(
        Refused, match="there are POST /v1/chat/completions, POST /v1/responses, POST"
    ) as refused:
        post(f"{endpoint.base_url}{place}", endpoint.admit(echo), GOOD)
    assert refused.value.status == 404


def test_a_client_that_asks_again_gets_the_answer_that_is_on_its_way(endpoint: Endpoint, echo: Echo) -> None:
    key = endpoint.admit(echo)
    for again in ("0", "1", "2"):
        chat(endpoint, key, **{"x-stainless-retry-count": again})
    assert len(echo.asked) == 1
    chat(endpoint, key)
    assert len(echo.asked) == 2


def test_whoever_waits_when_the_episode_ends_is_told(endpoint: Endpoint, echo: Echo) -> None:
    echo.hold = True
    key = endpoint.admit(echo)
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(chat, endpoint, key) for _ in range(8)]
        while len(echo.asked) < 8:
            threading.Event().wait(0.01)
        endpoint.revoke(key)
        assert {type(found.exception()) for found in waiting} == {Refused}
    with pytest.raises(Refused, match="belongs to no episode under way"):
        chat(endpoint, key)


def test_hundreds_may_wait_at_once(endpoint: Endpoint, echo: Echo) -> None:
    echo.hold = True
    key = endpoint.admit(echo)
    head = "POST /v1/chat/completions HTTP/1.1\r\n"
    head += f"Authorization: Bearer {key}\r\nContent-Length: {len(GOOD)}\r\n\r\n"
    connections = [socket.create_connection(("127.0.0.1", endpoint.server.server_port)) for _ in range(300)]
    for connection in connections:
        connection.sendall(head.encode() + GOOD)
    while len(echo.asked) < len(connections):
        threading.Event().wait(0.01)
    endpoint.revoke(key)
    assert all(connection.recv(100).startswith(b"HTTP/1.1 401") for connection in connections)
    for connection in connections:
        connection.close()


def raw(endpoint: Endpoint, sent: bytes) -> bytes:
    """What comes back to bytes, after which nothing more is sent."""
    found = b""
    with socket.create_connection(("127.0.0.1", endpoint.server.server_port), timeout=60) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                found += piece
        except ConnectionError:
            pass
    return found


@pytest.mark.parametrize("seed", range(40))
def test_damaged_requests_get_an_error_or_nothing(endpoint: Endpoint, echo: Echo, seed: int) -> None:
    numbers = random.Random(seed)
    key = endpoint.admit(echo)
    sent = bytearray(
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Length: {len(GOOD)}\r\n\r\n".encode()
        + GOOD
    )
    for _ in range(numbers.randint(1, 6)):
        place = numbers.randrange(len(sent))
        match numbers.randrange(3):
            case 0:
                sent[place] = numbers.randrange(256)
            case 1:
                del sent[place : place + numbers.randrange(9)]
            case _:
                sent[place:place] = numbers.choice(
                    [b"\r\n", b"\x00", b"Content-Length: -5\r\n", b"9" * 20, b"{" * 9]
                )
    found = raw(endpoint, bytes(sent))
    assert b"Traceback" not in found and b" 500 " not in found[:20]
    assert not found or found.startswith(b"HTTP/1.")
    assert chat(endpoint, key)["choices"]  # and the next one is served


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 401),
        (b"DELETE /v1/models HTTP/1.1\r\n\r\n", 501),
        (b"GET " + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
    ],
)
def test_what_is_no_request_gets_an_error_of_the_same_form(
    endpoint: Endpoint, head: bytes, status: int
) -> None:
    found = raw(endpoint, head)
    assert found.startswith(f"HTTP/1.1 {status} ".encode())
    assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["message"]


def test_other_dialects_have_their_own_forms(endpoint: Endpoint, echo: Echo) -> None:
    asked = {"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "2"}]}
    said = json.loads(send(endpoint, "/messages", asked, {"x-api-key": endpoint.admit(echo)}))
    assert (said["content"], said["stop_reason"]) == (
        [{"type": "text", "text": "2", "citations": None}],
        "end_turn",
    )
    said = json.loads(
        send(endpoint, "/responses", {"input": "2"}, {"Authorization": f"Bearer {endpoint.admit(echo)}"})
    )
    assert said["output"][0]["content"][0]["text"] == "2"
    stream = send(endpoint, "/messages", asked | {"stream": True}, {"x-api-key": endpoint.admit(echo)})
    assert stream.startswith(b"event: message_start\n") and stream.endswith(b'{"type": "message_stop"}\n\n')


def test_errors_are_in_the_dialect_of_their_place(endpoint: Endpoint) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        send(endpoint, "/messages", {}, {"x-api-key": "unknown"})
    with refused.value as error:
        assert error.code == 401
        assert json.load(error)["error"]["type"] == "authentication_error"


def send(endpoint: Endpoint, place: str, fields: dict[str, Any], headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(
        f"{endpoint.base_url}{place}",
        json.dumps(fields).encode(),
        {"Content-Type": "application/json", **headers},
    )
    with DIRECT.open(request, timeout=30) as reply:
        return bytes(reply.read())
