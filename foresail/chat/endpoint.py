"""Asks a server with OpenAI's chat completions, several requests at a time.

endpoint = Endpoint(url="http://judge:8000/v1", model="judge-7b", parallel=16)
endpoint.answer([conversation, …]) -> ["{…}", Refused("…"), …]      # in the order of the questions

A server that does not answer is waited for, and the log says so; one that stays away raises `EndpointBroken`.
"""

from __future__ import annotations

import hashlib
import json
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

from foresail.chat.outage import Outage
from foresail.records import Message

LONGEST_PAUSE = 60.0
BUSY = (408, 409, 425, 429)
ITS_OWN_FAULT = (500,)  # of a question, where others are answered
MOST_BYTES = 2**24  # of a reply
TRIES = 4  # of a question on which a server fails that answers others


def growing_pauses(seconds: float) -> tuple[float, ...]:
    """growing_pauses(10) -> (0.5, 1.0, 2.0, 4.0, 2.5): seconds before each further attempt."""
    pauses: list[float] = []
    while (left := seconds - sum(pauses)) > 0:
        pauses.append(min(0.5 * 2 ** len(pauses), LONGEST_PAUSE, left))
    return tuple(pauses)


@dataclass(frozen=True, slots=True)
class Refused:
    """The server does not answer this question; others it may."""

    detail: str


class EndpointBroken(OSError):
    """The server answers nobody; the message says how, and that the same command goes on."""


def no_note(number: int, answer: str | Refused) -> None:
    """Nobody waits for single answers."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    url: str
    model: str
    key: str = ""
    parallel: int = 16
    max_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    seconds: float = 300.0
    pauses: tuple[float, ...] = growing_pauses(600.0)
    outage: Outage = field(default_factory=Outage, compare=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"the address of an endpoint begins with http://, not {self.url!r}")

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        keys: Sequence[str] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        note: Callable[[int, str | Refused], None] = no_note,
    ) -> list[str | Refused]:
        """With keys, each question has a seed of its own. `note` gets each answer as soon as it is there.

        `schema` is of the object that an answer has to be; a server that does not know such a request gets it
        without.
        """

        def ask(number: int) -> str | Refused:
            answer = self._ask(conversations[number], keys[number] if keys is not None else None, schema)
            note(number, answer)
            return answer

        with ThreadPoolExecutor(self.parallel) as pool:
            return [*pool.map(ask, range(len(conversations)))]

    def _ask(
        self, conversation: Sequence[Message], key: str | None, schema: Mapping[str, Any] | None
    ) -> str | Refused:
        answered_before = self.outage.answered
        for tried, pause in enumerate((*self.pauses, None), start=1):
            try:
                reply = self._post(conversation, key, None if self.outage.refuses_schemas else schema)
            except HTTPError as error:
                body = error.read(500).decode("utf-8", "replace")
                if error.code in (401, 403, 404):
                    raise EndpointBroken(
                        f"{self.url} answers with {error.code}: {body}; check address, model and key, then "
                        "run the same command again"
                    ) from None
                if error.code < 500 and error.code not in BUSY:
                    if schema is None or self.outage.refuses_schemas:
                        return Refused(f"{error.code}: {body}")
                    return self._ask_plainly(conversation, key)
                if error.code in ITS_OWN_FAULT:
                    if self.outage.answered > answered_before and tried >= TRIES:
                        return Refused(f"{error.code}: {body}")
                    schema = None  # some fail on it, and do not say so
                self._wait(pause, f"answers with {error.code}: {body}")
            except (URLError, OSError, HTTPException) as error:
                self._wait(pause, f"cannot be reached: {getattr(error, 'reason', error)}")
            else:
                self.outage.end(self.url)
                return read_reply(reply)
        raise AssertionError("the last attempt raises")

    def _ask_plainly(self, conversation: Sequence[Message], key: str | None) -> str | Refused:
        """Without the schema; if that is taken, it is what the server refuses."""
        answer = self._ask(conversation, key, None)
        if not isinstance(answer, Refused):
            self.outage.refuses_schemas = True
        return answer

    def _post(
        self, conversation: Sequence[Message], key: str | None, schema: Mapping[str, Any] | None
    ) -> bytes:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in conversation],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        if self.top_p < 1:
            body["top_p"] = self.top_p
        if key is not None:
            body["seed"] = seed_of(self.seed, key)
        if schema is not None:
            form = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = f"{self.url.rstrip('/')}/chat/completions"
        request = urllib.request.Request(address, data=json.dumps(body).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=self.seconds) as answer:
            return bytes(answer.read(MOST_BYTES))

    def _wait(self, pause: float | None, why: str) -> None:
        if pause is None:
            raise EndpointBroken(f"{self.url} {why}; start it, then run the same command again: it goes on")
        self.outage.tell(self.url, why, pause)
        time.sleep(pause)


def seed_of(seed: int, key: str) -> int:
    """31 bits: what every server takes."""
    digest = hashlib.blake2b(f"{seed}\x1f{key}".encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1


def read_reply(body: bytes) -> str | Refused:
    try:
        content: Any = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Refused(f"the reply is none of OpenAI's: {body[:80]!r}")
    return content if isinstance(content, str) else Refused("the reply has no text")
