"""What is read of a request before its key is known, and how its length may be told: tried on the real endpoint."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing

import pytest

from foresail.agents.programs.chat_request import ChatRequest
from foresail.agents.programs.endpoint import LONGEST_BODY, Endpoint
from foresail.agents.tools.corpus import CorpusPassage
from foresail.agents.tools.search_server import SearchServer
from foresail.chat import http_limits, http_server
from foresail.chat.http_limits import LONGEST_HEAD, LimitedInput
from foresail.chat.reply import Reply
from foresail.chat.request import ChatMessage

GOOD = json.dumps({"messages": [{"role": "user", "content": "2"}]}).encode()


def echo(request: ChatRequest) -> Future[Reply]:
    reply: Future[Reply] = Future()
    message = ChatMessage(role="assistant", content=request.messages[-1].content)
    reply.set_result(
        Reply(id="x", model="policy", message=message, finish="stop", prompt_tokens=1, completion_tokens=1)
    )
    return reply


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with closing(Endpoint()) as endpoint:
        yield endpoint


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of every piece of a body that was read to be looked at."""
    read, found = LimitedInput.read, []

    def note(self: LimitedInput, size: int) -> bytes:
        found.append(size)
        return read(self, size)

    monkeypatch.setattr(LimitedInput, "read", note)
    return found


def connect(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection(("127.0.0.1", endpoint.server.server_port), timeout=20)


def exchange(endpoint: Endpoint, sent: bytes) -> bytes:
    """What comes back while the client's side stays open: a server that waited for more would be late."""
    found = b""
    with connect(endpoint) as connection:
        try:
            connection.sendall(sent)
            while piece := connection.recv(1 << 16):
                found += piece
        except ConnectionError:
            pass
    return found


def post(*headers: bytes, body: bytes = GOOD) -> bytes:
    return b"\r\n".join([b"POST /v1/chat/completions HTTP/1.1", *headers, b"", b""]) + body


def bearer(key: str) -> bytes:
    return f"Authorization: Bearer {key}".encode()


def status(reply: bytes) -> int:
    assert reply.startswith(b"HTTP/1.1 "), reply[:60]
    return int(reply.split()[1])


SIZE = str(len(GOOD)).encode()
BAD_LENGTHS = [
    b"00000000000099999999", b"0" * 30 + SIZE, b"0" + SIZE, b"+" + SIZE, b"-" + SIZE, b"-0", b"1_0", b"1 0",
    b"0x10", b"1e3", b"1.0", b"", b" ", b"\xb2\xb3", "٣".encode(), b"\x00" + SIZE, SIZE + b"\x00", SIZE + b"\x0b",
    SIZE + b"," + SIZE, SIZE + b";a", b"9" * 12, b"9" * 5000, b"NaN", str(LONGEST_BODY + 1).encode(), b"16777217",
]  # fmt: skip


@pytest.mark.parametrize("length", BAD_LENGTHS)
def test_a_length_is_a_plain_number(endpoint: Endpoint, sizes: list[int], length: bytes) -> None:
    key = bearer(endpoint.admit(echo))
    reply = exchange(endpoint, post(key, b"Content-Length: " + length))
    assert (
        status(reply) in (400, 411, 413) and json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["message"]
    )
    assert b"\r\nConnection: close\r\n" in reply and not sizes


LENGTH = b"Content-Length: " + SIZE


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (LENGTH, LENGTH),
        (LENGTH, b"Content-Length: 5"),
        (LENGTH, b"content-length: 99999999999"),
        (LENGTH, b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: identity", LENGTH),
        (b"Transfer-Encoding: chunked",),
        (b"Content-Length:\r\n " + SIZE,),
        (LENGTH + b"\r\n 5",),
        (b"Content-Length : " + SIZE,),
    ],
)
def test_a_length_is_told_once_and_in_one_way(
    endpoint: Endpoint, sizes: list[int], headers: tuple[bytes, ...]
) -> None:
    reply = exchange(endpoint, post(bearer(endpoint.admit(echo)), *headers))
    assert status(reply) in (400, 411) and not sizes


HIDING = [
    b"garbage",
    b" folded",
    b"\tfolded: x",
    b": empty",
    b"From nobody",
    b"A : b",
    b"A\x00: b",
    b"A: b\r",
]


@pytest.mark.parametrize("line", HIDING)
def test_no_line_hides_what_stands_behind_it(endpoint: Endpoint, sizes: list[int], line: bytes) -> None:
    """The standard library reads no header behind some of these, and would take a body for the next request."""
    inner = post(bearer(endpoint.admit(echo)), LENGTH)
    length = b"Content-Length: %d" % len(inner)
    for headers in ([b"Host: x", line, length], [line, b"Host: x", length]):
        reply = exchange(endpoint, b"\r\n".join([b"GET /v1/models HTTP/1.1", *headers, b"", inner]))
        assert re.findall(rb"HTTP/1.1 (\d+)", reply) == [b"400"] and not sizes


@pytest.mark.parametrize("header", [LENGTH, LENGTH + b" \t", b"content-length:" + SIZE])
def test_an_honest_length_is_read(endpoint: Endpoint, sizes: list[int], header: bytes) -> None:
    sent = post(bearer(endpoint.admit(echo)), header, b"Connection: close")
    assert status(exchange(endpoint, sent)) == 200 and sizes == [len(GOOD)]


LENGTHS = [SIZE, b"16777216", *BAD_LENGTHS]
ENCODINGS = [None, b"chunked", b"gzip, chunked"]
KEYS = [b"", b"Authorization: Bearer sk-1", b"Authorization: " + b"x" * 900, b"X-Nothing: 1"]


def test_nothing_of_a_body_is_read_before_the_key(endpoint: Endpoint, sizes: list[int]) -> None:
    endpoint.admit(echo)
    for length, encoding, key in itertools.product(LENGTHS, ENCODINGS, KEYS):
        headers = [b"Content-Length: " + length, key or b"A: b"]
        headers += [b"Transfer-Encoding: " + encoding] if encoding else []
        assert status(exchange(endpoint, post(*headers))) == 401, (length, encoding, key)
    assert not sizes


def test_a_head_is_bounded_as_a_whole(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    receive = LimitedInput._receive

    def note(self: LimitedInput) -> bool:
        before = len(self.buffer)
        found = receive(self)
        taken.append(len(self.buffer) - before)
        return found

    monkeypatch.setattr(LimitedInput, "_receive", note)
    monkeypatch.setattr(LimitedInput, "discard", lambda self: None)
    heads = [
        [b"A: " + b"x" * 60_000] * 90,
        [b"A: " + b"x" * 700_000],
        [b"A: b"] * 20_000,
        [b"x" * 300_000],
        [b"A: b", *[b" " + b"x" * 6000] * 90],
    ]
    for headers in heads:
        taken.clear()
        reply = exchange(endpoint, post(*headers))
        assert not reply or status(reply) == 431
        assert sum(taken) <= LONGEST_HEAD + http_limits.PIECE


def test_a_slow_client_is_closed(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte now and then, or none at all: not for longer than a head may take."""
    monkeypatch.setattr(http_limits, "HEAD_SECONDS", 0.3)
    began = time.monotonic()
    with connect(endpoint) as silent, connect(endpoint) as slow:
        try:
            for number in range(100):
                slow.sendall(post(b"A: b")[number : number + 1])
                time.sleep(0.02)
        except ConnectionError:
            pass
        assert not silent.recv(10)
        assert 0.2 < time.monotonic() - began < 10


def test_a_slow_body_is_closed_as_well(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "BODY_SECONDS", 0.2)
    assert exchange(endpoint, post(bearer(endpoint.admit(echo)), LENGTH, body=GOOD[:5])) == b""


def test_connections_without_a_key_are_counted(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_STRANGERS", 5)
    key = bearer(endpoint.admit(echo))
    known = []
    for _ in range(7):  # with a key they are no strangers
        known.append(connect(endpoint))
        known[-1].sendall(post(key, LENGTH))
        assert status(known[-1].recv(9999)) == 200
    strangers = [connect(endpoint) for _ in range(5)]
    while len(endpoint.server.strangers) < 5:
        threading.Event().wait(0.01)
    assert exchange(endpoint, post(key, LENGTH)) == b""
    for connection in strangers:
        connection.close()
    while endpoint.server.strangers:
        threading.Event().wait(0.01)
    assert status(exchange(endpoint, post(key, LENGTH, b"Connection: close"))) == 200
    for connection in known:
        connection.close()


def test_who_sends_a_long_body_with_a_dead_key_still_reads_why(endpoint: Endpoint) -> None:
    for size in (10, 1 << 12, 1 << 20, LONGEST_BODY):
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.server.server_port)
        connection.request("POST", "/v1/chat/completions", b" " * size, {"Authorization": "Bearer sk-1"})
        assert connection.getresponse().status == 401
        connection.close()


def test_a_client_that_waits_for_a_word_gets_it_after_its_key(endpoint: Endpoint) -> None:
    expect = b"Expect: 100-continue"
    assert status(exchange(endpoint, post(expect, LENGTH, body=b""))) == 401
    sent = post(bearer(endpoint.admit(echo)), expect, LENGTH, b"Connection: close")
    reply = exchange(endpoint, sent)
    assert status(reply) == 100 and re.findall(rb"HTTP/1.1 (\d+)", reply) == [b"100", b"200"]


def test_a_body_where_none_belongs_is_no_second_request(endpoint: Endpoint) -> None:
    inner = post(bearer(endpoint.admit(echo)), LENGTH)
    for header in (b"Content-Length: %d" % len(inner), b"Transfer-Encoding: chunked"):
        reply = exchange(endpoint, b"GET /v1/models HTTP/1.1\r\n" + header + b"\r\n\r\n" + inner)
        assert re.findall(rb"HTTP/1.1 (\d+)", reply) == [b"200"]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_heads_are_made_of_the_body_is_read_for_one_reason(
    endpoint: Endpoint, sizes: list[int], seed: int
) -> None:
    """Heads put together at random: a body is read only with a key and one plain length, and then all of it."""
    numbers, key = random.Random(seed), endpoint.admit(echo)
    for _ in range(40):
        lengths = [
            numbers.choice([SIZE, SIZE, *BAD_LENGTHS[:-3]]) for _ in range(numbers.choice([0, 1, 1, 2]))
        ]
        has_key, is_chunked = numbers.random() < 0.7, numbers.random() < 0.2
        headers = [b"Content-Length: " + length for length in lengths]
        headers += [bearer(key)] if has_key else []
        headers += [b"Transfer-Encoding: chunked"] if is_chunked else []
        headers += [b"X-%d: y" % number for number in range(numbers.randrange(5))]
        numbers.shuffle(headers)
        sizes.clear()
        reply = exchange(endpoint, post(*headers, b"Connection: close"))
        if not has_key:
            assert status(reply) == 401 and not sizes
        elif lengths == [SIZE] and not is_chunked:
            assert status(reply) == 200 and sizes == [len(GOOD)]
        else:
            assert status(reply) in (400, 411, 413) and not sizes, headers


class Nothing:
    passages: tuple[CorpusPassage, ...] = ()

    def find(self, query: str, count: int) -> list[CorpusPassage]:
        return []


def test_the_search_server_reads_lengths_as_strictly(sizes: list[int]) -> None:
    server = SearchServer(Nothing(), port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for length in BAD_LENGTHS:
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
                connection.sendall(b"POST /search HTTP/1.1\r\nContent-Length: " + length + b"\r\n\r\n{}")
                assert status(connection.recv(9999)) in (400, 411, 413)
        assert not sizes
    finally:
        server.shutdown()
        server.server_close()
