"""The client of OpenAI's chat completions: what it waits for, what it says, what it leaves out."""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, TCPServer
from typing import Any, ClassVar

import pytest
from random_seed import random_seed

from foresail.chat.endpoint import Endpoint, EndpointBroken, Refused, growing_pauses, read_reply
from foresail.chat.http_server import JsonHandler, JsonServer
from foresail.records import Message

Reply = Callable[[dict[str, Any], int], int | str]


@contextmanager
def server_that(reply: Reply) -> Iterator[Callable[..., Endpoint]]:
    """`reply` gets the request and how many came before: a status, or an answer."""
    lock, counts = threading.Lock(), [0]

    def chat(handler: JsonHandler) -> None:
        request = json.loads(handler.read_body(2**20))
        with lock:
            replied = reply(request, counts[0])
            counts[0] += 1
        if isinstance(replied, int):
            handler.reply(replied, {"error": "no"})
        else:
            handler.reply(200, {"choices": [{"message": {"role": "assistant", "content": replied}}]})

    class Handler(JsonHandler):
        timeout = 30.0
        routes: ClassVar = {"POST /v1/chat/completions": chat}

    server = JsonServer(Handler, port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    yield lambda **keys: Endpoint(url=url, model="m", **{"parallel": 3, "pauses": (0.0,) * 5, **keys})
    server.shutdown()
    server.server_close()
    thread.join()


def ask(*texts: str) -> list[list[Message]]:
    return [[Message(role="user", content=text)] for text in texts]


def test_pauses_grow_up_to_a_minute_and_add_up_to_the_patience() -> None:
    assert growing_pauses(10) == (0.5, 1.0, 2.0, 4.0, 2.5) and growing_pauses(0) == ()
    assert sum(growing_pauses(600)) == 600 and max(growing_pauses(600)) == 60


def test_an_outage_is_told_when_its_pauses_have_doubled_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("foresail.chat.outage.Outage.wait", lambda outage, pause: slept.append(pause) or True)
    caplog.set_level(logging.WARNING)
    noted: dict[int, str | Refused] = {}
    with server_that(lambda request, count: 503 if 2 <= count < 8 else "fine") as endpoint:
        opened = endpoint(pauses=(0.5, 1.0, 1.5, 2.0, 3.0, 4.0), parallel=1)
        answers = opened.answer(ask(*"abcde"), note=noted.__setitem__)
    assert answers == ["fine"] * 5 and noted == dict(enumerate(answers))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4 and len(slept) == 6, said
    assert "answers with 503" in said[0] and "waiting for it, next attempt in 1 s" in said[0]
    assert "in 2 s" in said[1] and "in 4 s" in said[2] and "answers again" in said[3]


def test_answers_before_an_outage_are_noted_though_it_does_not_end() -> None:
    noted: dict[int, str | Refused] = {}
    with (
        server_that(lambda request, count: 503 if count >= 4 else "fine") as endpoint,
        pytest.raises(EndpointBroken, match="it goes on"),
    ):
        endpoint().answer(ask(*"abcdefgh"), note=noted.__setitem__)
    assert len(noted) == 4


@contextmanager
def raw_server(reply: Callable[[], bytes]) -> Iterator[str]:
    """Its address; `reply` gives the bytes of a reply, headers too."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(reply())

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


def raw_reply(content: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)


def test_a_reply_that_breaks_off_is_asked_for_again() -> None:
    """The server dies while it replies: at any byte, of the headers too."""
    chance = random.Random(random_seed())
    content = json.dumps({"choices": [{"message": {"role": "assistant", "content": "fine"}}]}).encode()
    whole = raw_reply(content)
    cuts = [chance.randrange(len(whole)) for _ in range(40)] + [len(whole) - len(content)]
    left = [*cuts]
    with raw_server(lambda: whole[: left.pop()] if left else whole) as url:
        endpoint = Endpoint(url=url, model="m", parallel=1, pauses=(0.0,) * len(cuts))
        assert endpoint.answer(ask("a", "b")) == ["fine", "fine"] and not left, cuts


def test_a_server_that_replies_with_a_page_is_none() -> None:
    with (
        raw_server(lambda: raw_reply(b"<html>Welcome</html>")) as url,
        pytest.raises(EndpointBroken, match=r"no JSON: b'<html>.*start it, then run the same command again"),
    ):
        Endpoint(url=url, model="m", pauses=(0.0,) * 3).answer(ask("a"))


def test_a_question_on_which_the_server_fails_does_not_stop_the_others() -> None:
    with server_that(
        lambda request, count: 500 if request["messages"][0]["content"] == "c" else "fine"
    ) as endpoint:
        answers = endpoint(pauses=(0.01,) * 9, parallel=2).answer(ask(*"abcdefghij"))
    assert answers.count("fine") == 9 and isinstance(answers[2], Refused)


@pytest.mark.parametrize("fault", [500, 502, 403, "hang up"])
def test_a_question_on_which_the_server_fails_is_refused_though_it_is_asked_alone(fault: int | str) -> None:
    """A filter before the server, a proxy, a process that such a question ends: others are answered."""

    def reply(request: dict[str, Any], count: int) -> int | str:
        if "poison" not in request["messages"][0]["content"]:
            return "fine"
        if isinstance(fault, int):
            return fault
        raise ConnectionAbortedError("the process is gone")

    with server_that(reply) as endpoint:
        opened = endpoint(pauses=(0.01,) * 9, parallel=1)
        (answer,) = opened.answer(ask("poison"))
        assert isinstance(answer, Refused) and "answers other questions" in answer.detail
        assert opened.answer(ask("a", "poison", "b"))[::2] == ["fine", "fine"]


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_a_server_that_answers_nothing_is_broken_and_no_question_is_refused(status: int) -> None:
    with server_that(lambda request, count: status) as endpoint, pytest.raises(EndpointBroken):
        endpoint(pauses=(0.01,) * 9).answer(ask("a", "b"))


def test_a_server_that_restarts_refuses_nothing() -> None:
    """Fails in the middle of five parallel questions, and answers again later."""
    with server_that(lambda request, count: 502 if 5 <= count < 60 else "fine") as endpoint:
        answers = endpoint(pauses=(0.01,) * 40, parallel=5).answer(ask(*"abcdefghijklmnop"))
    assert answers == ["fine"] * 16


@pytest.mark.parametrize("status", [400, 500])
def test_a_schema_is_sent_and_left_out_where_it_is_refused(status: int) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    seen: list[bool] = []

    def reply(request: dict[str, Any], count: int) -> int | str:
        seen.append("response_format" in request)
        return status if seen[-1] else "plain"

    with server_that(reply) as endpoint:
        opened = endpoint(parallel=1)
        assert opened.answer(ask("a"), schemas=[schema]) == ["plain"]
        assert seen == [True, False]
        opened.answer(ask("b"), schemas=[schema])
        assert seen[2:] == ([False] if status == 400 else [True, False])
    with server_that(lambda request, count: json.dumps(request["response_format"])) as endpoint:
        (answer,) = endpoint().answer(ask("a"), schemas=[schema])
        assert json.loads(str(answer))["json_schema"]["schema"] == schema


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b'"x"', b"{", b'{"choices": []}', b'{"choices": [null]}', b'{"choices": "abc"}',
        b'{"choices": [{"message": "abc"}]}', b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": ["a"]}}]}', b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": null, "tool_calls": [{"id": "1"}]}}]}', b"[" * 100_000,
        b'{"choices": [{"message": {"content": "\xff"}}]}', b"<html>502</html>",
        b'{"choices": [{"message": {"content": "half of"}, "finish_reason": "length"}]}',
    ],
)  # fmt: skip
def test_a_reply_that_is_none_is_refused(body: bytes) -> None:
    assert isinstance(read_reply(body), Refused)


def test_a_question_that_is_refused_with_and_without_a_schema_is_refused() -> None:
    with server_that(lambda request, count: 400) as endpoint:
        opened = endpoint()
        (answer,) = opened.answer(ask("a"), schemas=[{"type": "object"}])
        assert answer == Refused('400: {"error": "no"}') and not opened.outage.refuses_schemas


def test_who_waits_for_a_server_can_be_stopped_by_another_thread() -> None:
    with server_that(lambda request, count: 503) as endpoint:
        opened, ended = endpoint(pauses=(600.0,)), threading.Event()

        def run() -> None:
            with pytest.raises(EndpointBroken, match="not waited for any more"):
                opened(ask("a", "b"))
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        assert not ended.wait(0.2)
        opened.stop()
        assert ended.wait(30)
