"""Environments of an OpenEnv server: against one that is played here, and against a real one where there is one."""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import TOKENIZER

import foresail.agents.openenv as openenv
from foresail.agents.environment import EnvironmentBroken, Observation
from foresail.agents.factory import open_factory
from foresail.agents.openenv import ActionForm, BadAction, OpenEnv, action_form, open_env, show
from foresail.agents.opening import add_openings
from foresail.recipe.tables.environment import Environment
from foresail.records import Message, Problem


def problem(**row: Any) -> Problem:
    return Problem(id="p", prompt=(Message(role="user", content="Guess."),), answer="-", extra=row)


WORD = ActionForm(fields=("guess",), only="guess", kind="integer")


class Server:
    """Sessions of a guessing game; `full` of them are refused before the first is let in."""

    def __init__(self, full: int = 0, change: Callable[[str], str] = lambda text: text) -> None:
        self.full, self.change, self.open_now = full, change, 0

    async def connect(self) -> Session:
        self.open_now += 1
        return Session(self)


class Session:
    def __init__(self, server: Server) -> None:
        self.server, self.answer = server, ""

    async def send(self, message: str, /) -> None:
        self.answer = self.server.change(json.dumps(self.reply(**json.loads(message))))

    def reply(self, type: str, data: dict[str, Any]) -> dict[str, Any]:
        if type == "reset" and self.server.full:
            self.server.full -= 1
            self.answer = json.dumps(
                {"type": "error", "data": {"message": "full", "code": "CAPACITY_REACHED"}}
            )
            raise ConnectionError("closed")  # what it said can still be read
        if type == "reset":
            self.number = data["seed"] % 10
            return observation(f"from 0 to 9, {self.number} is odd" if self.number % 2 else "from 0 to 9")
        if data["guess"] > 9:
            errors = [{"loc": ["guess"], "msg": "at most 9"}]
            return {
                "type": "error",
                "data": {"message": "Invalid", "code": "VALIDATION_ERROR", "errors": errors},
            }
        if data["guess"] < 0:
            return {"type": "error", "data": {"message": "boom", "code": "EXECUTION_ERROR"}}
        right = data["guess"] == self.number
        return observation("right" if right else "no", reward=1.0 if right else -0.1, done=right)

    async def recv(self) -> str:
        return self.answer

    async def close(self) -> None:
        self.server.open_now -= 1


def observation(text: str, **more: Any) -> dict[str, Any]:
    data = {"observation": {"text": text, "metadata": {}}, "reward": None, "done": False, **more}
    return {"type": "observation", "data": data}


async def play(server: Server, responses: list[str], seed: int = 7) -> list[Observation]:
    environment = OpenEnv(server.connect, WORD)
    try:
        said = await OpenEnv(server.connect, WORD).open(problem(seed=seed))
        server.open_now -= 1  # that one is not closed
        await environment.reset(problem(seed=seed) if not said else with_text(said, seed))
        return [await environment.step(response) for response in responses]
    finally:
        await environment.close()


def with_text(text: str, seed: int) -> Problem:
    return Problem(
        id="p", prompt=(Message(role="user", content=f"Guess.\n\n{text}"),), answer="-", extra={"seed": seed}
    )


def test_an_episode_is_a_session_with_rewards_and_an_end() -> None:
    server = Server()
    seen = asyncio.run(play(server, ["<think>3?</think>3", "seven", "12", "7"]))
    assert [turn.reward for turn in seen] == [-0.1, None, None, 1.0]
    assert [turn.done for turn in seen] == [False, False, False, True]
    words = [turn.messages[0].content for turn in seen[:3]]
    assert words == ["no", "error: an action is an integer and nothing else", "error: guess: at most 9"]
    assert [bool(turn.uses) for turn in seen] == [False, True, True, False]
    assert server.open_now == 0


def test_what_it_says_first_ends_the_prompt_and_must_be_said_again() -> None:
    server = Server()
    opened = add_openings(lambda: OpenEnv(server.connect, WORD), [problem(seed=seed) for seed in range(40)])
    said = {entry.prompt[-1].content.partition("\n\n")[2] for entry in opened}
    assert len(said) == 6 and server.open_now == 0
    environment = OpenEnv(server.connect, WORD)
    asyncio.run(environment.reset(opened[3]))
    asyncio.run(environment.close())
    with pytest.raises(EnvironmentBroken, match="by a column seed"):
        asyncio.run(OpenEnv(server.connect, WORD).reset(problem(seed=3)))


def test_an_episode_waits_while_all_sessions_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openenv, "FULL_PAUSE", 0.0)
    server = Server(full=5)
    assert asyncio.run(play(server, ["7"]))[0].done
    assert server.full == 0 and server.open_now == 0


def test_a_server_that_fails_breaks_the_environment() -> None:
    with pytest.raises(EnvironmentBroken, match="EXECUTION_ERROR boom"):
        asyncio.run(play(Server(), ["-1"]))

    async def refuse() -> Session:
        raise OSError("nobody there")

    with pytest.raises(EnvironmentBroken, match="cannot be reached: OSError: nobody there"):
        asyncio.run(OpenEnv(refuse, WORD).reset(problem(seed=1)))


def test_whatever_a_server_answers_is_an_observation_or_broken() -> None:
    """Answers of which parts are cut out, put twice, or replaced by other JSON."""
    numbers = random.Random(0)

    def spoil(text: str) -> str:
        at, to = sorted(numbers.randrange(len(text) + 1) for _ in range(2))
        part = numbers.choice(["", text[at:to] * 2, "null", "[]", "{}", '"x"', "1e999", "\\", "\ud800"])
        return text[:at] + part + text[to:] if numbers.random() < 0.7 else text

    kinds = set()
    for _ in range(3000):
        server = Server(change=spoil)
        try:
            seen = asyncio.run(play(server, ["3"]))
            kinds.add("observation")
            assert all(turn.done or turn.messages[0].content for turn in seen)
            assert all(turn.reward is None or math.isfinite(turn.reward) for turn in seen)
        except EnvironmentBroken:
            kinds.add("broken")
    assert kinds == {"observation", "broken"}


# Actions.


@pytest.mark.parametrize(
    ("schema", "only"),
    [
        ({"properties": {"message": {"type": "string"}, "metadata": {}}, "required": ["message"]}, "message"),
        (
            {"properties": {"code": {"type": "string"}, "seconds": {"type": "number"}}, "required": ["code"]},
            "code",
        ),
        ({"properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"]}, None),
        ({"properties": {"moves": {"type": "array"}}, "required": ["moves"]}, None),
        ({"properties": {"move": {"type": "number"}}}, "move"),
        ({}, None),
    ],
)
def test_a_response_is_the_one_field_that_an_action_needs(schema: dict[str, Any], only: str | None) -> None:
    assert action_form(schema).only == only


@given(st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=8)))
def test_an_object_of_fields_is_read_as_it_was_written(action: dict[str, Any]) -> None:
    form = ActionForm(fields=("x", "y"))
    for text in (
        json.dumps(action),
        f"I move: {json.dumps(action)} and wait",
        f"```json\n{json.dumps(action)}\n```",
    ):
        assert form.read(text) == action


PIECES = [
    "{",
    "}",
    '"x"',
    ":",
    ",",
    "[",
    "]",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "1e999",
    "9" * 5000,
    "\\ud800",
]
PIECES += ["\ud800", "<think>", "</think>", "```json", " ", "\n", "7", '"', "true", "[" * 2000]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)), st.sampled_from([None, *openenv.KINDS]))
def test_any_text_is_an_action_that_can_be_sent_or_told_why_not(parts: list[str], kind: str | None) -> None:
    form = ActionForm(fields=("x",), only=kind and "x", kind=kind or "string")
    for text in ("".join(parts), '{"x": ' + "".join(parts) + "}", f"<think>{parts}</think>{''.join(parts)}"):
        try:
            action = form.read(text)
        except BadAction:
            continue
        assert json.loads(json.dumps(action, allow_nan=False).encode()) == action


def test_observations_are_shown_as_text_or_as_json() -> None:
    assert show({"text": "a door", "done": True, "reward": 1, "metadata": {"a": 1}}) == "a door"
    assert show({"board": [1, 2], "to_move": "x", "error": None}) == '{"board": [1, 2], "to_move": "x"}'
    assert show({}) == show(None) == ""


# Before the first step.


class Schema(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"action": {"properties": {"message": {"type": "string"}}}}).encode()
        self.send_response(200 if self.path == "/good/schema" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Schema)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_that_is_not_there_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(openenv, "load_connect", lambda: lambda url, **_: asked.append(url))
    make = open_env(f"{address}/good/", max_result_chars=100)
    assert make().form.only == "message"
    make().connect()
    assert asked == [f"ws{address[4:]}/good/ws"]
    for url, words in (
        (address, "404"),
        ("http://127.0.0.1:9", "refused"),
        ("localhost:1", "begins with http"),
    ):
        with pytest.raises(ValueError, match=words):
            open_env(url, max_result_chars=100)


def test_a_missing_package_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets", None)
    settings = Environment(name=f"openenv:{address}/good")
    assert [*settings.refusals()] == []
    with pytest.raises(ValueError, match=r'pip install "foresail\[openenv\]"'), open_factory(settings):
        pass


# A real server.

REAL = """
import random, sys, uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app

class Guess(Action):
    number: int

class Said(Observation):
    text: str = ""

class Game(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    def reset(self, seed=None, episode_id=None, **_):
        self.number = random.Random(seed).randrange(10)
        return Said(text=f"a number from 0 to 9 ({'odd' if self.number % 2 else 'even'})")
    def step(self, action, timeout_s=None, **_):
        right = action.number == self.number
        return Said(text="right" if right else "no", done=right, reward=1.0 if right else -0.1)
    @property
    def state(self):
        return State()

uvicorn.run(create_app(Game, Guess, Said, max_concurrent_envs=4), port=int(sys.argv[1]), log_level="error")
"""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("openenv", reason="a real server needs openenv")
    pytest.importorskip("websockets")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "server.py").write_text(REAL)
    process = subprocess.Popen([sys.executable, str(tmp_path / "server.py"), str(port)])
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                assert process.poll() is None, "the server has ended"
                time.sleep(0.1)
        yield f"openenv:http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_episodes_of_a_real_server(real: str) -> None:
    with open_factory(Environment(name=real)) as factory:
        reader = factory.reader(TOKENIZER)
        assert reader.openings is not None
        rows = reader.openings([problem(seed=seed) for seed in range(12)])  # more than its four sessions
        assert {row.prompt[-1].content[-6:] for row in rows} == {" (odd)", "(even)"}

        async def go(row: Problem) -> float:
            environment = factory.make()
            await environment.reset(row)
            total, number = 0.0, 0
            assert "integer" in (await environment.step("x")).messages[0].content
            while True:
                seen = await environment.step(str(number))
                total, number = total + (seen.reward or 0.0), number + 1
                if seen.done:
                    await environment.close()
                    return total

        async def all_of_them() -> list[float]:
            return list(await asyncio.gather(*map(go, rows)))

        totals = asyncio.run(all_of_them())
    wanted = [1.0 - 0.1 * random.Random(seed).randrange(10) for seed in range(12)]
    assert totals == pytest.approx(wanted)
