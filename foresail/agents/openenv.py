"""Environments of an OpenEnv server: `environment.name = "openenv:http://host:8000"`.

An episode is a session over the server's WebSocket (`/ws`). (POST /reset and /step make a new environment for
every request, so they allow only one turn.) The model's text is the action: unchanged if an action has one
required field, else a JSON object of its fields.

Needs the package websockets (pip install "foresail[openenv]").
"""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from foresail.agents.environment import EnvironmentBroken, Observation, ToolUse
from foresail.agents.opening import check_opening
from foresail.agents.tools.call_json import BadJSON, read_value
from foresail.agents.tools.tool import in_a_line
from foresail.agents.tools.tool_environment import shorten
from foresail.records import Message, Problem, final_text

SECONDS = 30.0  # limit of the server's first answer
FULL_PAUSE = 0.5  # seconds between attempts while all sessions of a server are taken
LARGEST = 1 << 26  # bytes of a message
HIDDEN = ("metadata", "reward", "done")  # fields of an observation that the model does not see
KINDS: dict[str, Callable[[str], Any]] = {"string": str, "integer": int, "number": float}


class BadAction(ValueError):
    """The model's text is no action; the message is for the model."""


@dataclass(frozen=True, kw_only=True)
class ActionForm:
    """How a response is read as an action: the value of one field, or an object of all of them."""

    fields: tuple[str, ...]
    only: str | None = None
    kind: str = "string"

    def read(self, response: str) -> dict[str, Any]:
        """ActionForm(fields=("message",), only="message").read("Hello") -> {"message": "Hello"}."""
        action = self._read(response)
        try:
            json.dumps(action, allow_nan=False, ensure_ascii=False).encode()
        except (
            ValueError,
            RecursionError,
        ):  # infinite, too deep, or half a character: no server could read it
            raise BadAction("the action has a number or a character that cannot be sent") from None
        return action

    def _read(self, response: str) -> dict[str, Any]:
        text = final_text(response)
        if text is None:
            raise BadAction("the thinking has not ended; close the think tag, then give the action")
        if self.only is not None:
            return {self.only: read_field(text, self.kind)}
        start = text.find("{")
        try:
            value, _ = read_value(text, max(start, 0))
        except BadJSON as error:
            raise BadAction(f"an action is a JSON object with {', '.join(self.fields)}: {error}") from None
        if not isinstance(value, dict):
            raise BadAction(f"an action is a JSON object with {', '.join(self.fields)}")
        return value


def read_field(text: str, kind: str) -> Any:
    try:
        return KINDS[kind](text.strip() if kind != "string" else text.strip("\n"))
    except (ValueError, OverflowError):
        raise BadAction(f"an action is a{'n' if kind == 'integer' else ''} {kind} and nothing else") from None


def action_form(schema: Mapping[str, Any]) -> ActionForm:
    """From the JSON schema of an action."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if name != "metadata"}
    required = [name for name in schema.get("required", ()) if name in properties]
    alone = required if len(required) == 1 else list(properties) if len(properties) == 1 else []
    kind = properties[alone[0]].get("type") if alone else None
    only = alone[0] if kind in KINDS else None
    return ActionForm(fields=tuple(properties), only=only, kind=str(kind) if only else "string")


class Connection(Protocol):
    """A WebSocket, as the package websockets has it."""

    async def send(self, message: str, /) -> None: ...

    async def recv(self) -> str | bytes: ...

    async def close(self) -> None: ...


class OpenEnv:
    """The environment of one episode."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        form: ActionForm,
        *,
        max_result_chars: int = 4000,
    ) -> None:
        self.connect, self.form, self.max_result_chars = connect, form, max_result_chars
        self.connection: Connection | None = None

    async def open(self, problem: Problem) -> str:
        row = {name: value for name, value in problem.extra.items() if is_json(value)}
        while (observation := await self._begin(row)) is None:  # all sessions are taken
            await asyncio.sleep(FULL_PAUSE)
        return shorten(show(observation.get("observation")), self.max_result_chars)

    async def _begin(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        await self.close()
        try:
            self.connection = await self.connect()
        except Exception as error:
            raise EnvironmentBroken(f"the OpenEnv server cannot be reached: {in_a_line(error)}") from error
        answer = await self._ask({"type": "reset", "data": dict(row)})
        if answer.get("type") == "error" and error_of(answer)[0] == "CAPACITY_REACHED":
            return None
        return self._observation(answer)

    async def reset(self, problem: Problem) -> None:
        check_opening(problem, await self.open(problem))

    async def step(self, response: str) -> Observation:
        try:
            action = self.form.read(response)
        except BadAction as error:
            return self._refuse(str(error))
        answer = await self._ask({"type": "step", "data": action})
        if answer.get("type") == "error" and error_of(answer)[0] == "VALIDATION_ERROR":
            return self._refuse(error_of(answer)[1])
        data = self._observation(answer)
        reward, done = data.get("reward"), data.get("done")
        if reward is not None and not (isinstance(reward, int | float) and math.isfinite(reward)):
            raise EnvironmentBroken(f"the OpenEnv server gave the reward {reward!r}")
        text = shorten(show(data.get("observation")), self.max_result_chars) or "(nothing)"
        messages = () if done else (Message(role="user", content=text),)
        return Observation(
            messages=messages, done=bool(done), reward=None if reward is None else float(reward)
        )

    def _refuse(self, why: str) -> Observation:
        use = ToolUse(tool="", seconds=0.0, error=why)
        return Observation(messages=(Message(role="user", content=f"error: {why}"),), uses=(use,))

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self.connection is not None
        try:
            with suppress(Exception):  # a full server says so, and closes, before the first message
                await self.connection.send(json.dumps(message))
            answer = json.loads(await self.connection.recv())
        except Exception as error:  # the connection ended, or the answer is no JSON
            raise EnvironmentBroken(f"the OpenEnv server is gone: {in_a_line(error)}") from error
        if not isinstance(answer, dict) or not isinstance(answer.get("data"), dict):
            raise EnvironmentBroken(f"the OpenEnv server answers with {str(answer)[:80]!r}")
        return answer

    def _observation(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer.get("type") != "observation":
            raise EnvironmentBroken(f"the OpenEnv server: {' '.join(error_of(answer))}")
        data: dict[str, Any] = answer["data"]
        return data

    async def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()


def error_of(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Error code and message; a validation error lists its fields."""
    data = answer["data"]
    code, message = str(data.get("code", "")), str(data.get("message", answer.get("type")))
    errors = data.get("errors")
    details = [entry for entry in errors if isinstance(entry, dict)] if isinstance(errors, list) else []
    mistakes = "; ".join(f"{place(entry)}: {entry.get('msg')}" for entry in details[:3])
    return code, mistakes or message


def place(entry: Mapping[str, Any]) -> str:
    where = entry.get("loc")
    return ".".join(map(str, where)) if isinstance(where, list | tuple) else ""


def show(observation: Any) -> str:
    """A lone text unchanged, else JSON: show({"text": "a door", "metadata": {}}) -> "a door"."""
    if not isinstance(observation, dict):
        return "" if observation is None else str(observation)
    parts = {key: value for key, value in observation.items() if key not in HIDDEN and value is not None}
    if len(parts) == 1 and isinstance(text := next(iter(parts.values())), str):
        return text
    return json.dumps(parts, ensure_ascii=False) if parts else ""


def is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def open_env(url: str, *, max_result_chars: int) -> Callable[[], OpenEnv]:
    """Makes environments of the server at this address; raises ValueError if it cannot be used."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(
            f"environment.name: the address of an OpenEnv server begins with http://, not {url!r}"
        )
    base = url.rstrip("/")
    connect = load_connect()
    try:
        with urllib.request.urlopen(f"{base}/schema", timeout=SECONDS) as answer:
            schema = json.loads(answer.read())["action"]
            form = action_form(schema)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"environment.name: there is no OpenEnv server at {base} that tells of its actions ({base}/schema): "
            f"{in_a_line(error)}"
        ) from None
    socket = f"ws{base.removeprefix('http')}/ws"
    return partial(
        OpenEnv, lambda: connect(socket, max_size=LARGEST), form, max_result_chars=max_result_chars
    )


def load_connect() -> Callable[..., Awaitable[Connection]]:
    try:
        connect: Callable[..., Awaitable[Connection]] = importlib.import_module(
            "websockets.asyncio.client"
        ).connect
    except ImportError:
        raise ValueError(
            'OpenEnv servers need the package websockets; pip install "foresail[openenv]"'
        ) from None
    return connect
