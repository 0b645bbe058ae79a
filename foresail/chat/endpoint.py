"""Asks a server with OpenAI's chat completions, several requests at a time.

endpoint = Endpoint(url="http://judge:8000/v1", model="judge-7b", parallel=16)
endpoint.answer([conversation, …]) -> ["{…}", Refused("…"), …]      # in the order of the questions
"""

from __future__ import annotations

import hashlib
import json
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

from foresail.records import Message

PAUSES = (0.5, 2.0, 8.0, 30.0)  # seconds before each further attempt
BUSY = (408, 409, 425, 429)
MOST_BYTES = 2**24  # of a reply


@dataclass(frozen=True, slots=True)
class Refused:
    """The server does not answer this question; others it may."""

    detail: str


class EndpointBroken(OSError):
    """The server answers nobody; the message says how, and that the same command goes on."""


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
    pauses: tuple[float, ...] = PAUSES

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"the address of an endpoint begins with http://, not {self.url!r}")

    def answer(
        self, conversations: Sequence[Sequence[Message]], keys: Sequence[str] | None = None
    ) -> list[str | Refused]:
        """With keys, each question has a seed of its own."""
        with ThreadPoolExecutor(self.parallel) as pool:
            return [*pool.map(self._ask, conversations, keys or [None] * len(conversations))]

    def _ask(self, conversation: Sequence[Message], key: str | None) -> str | Refused:
        for pause in (*self.pauses, None):
            try:
                return read_reply(self._post(conversation, key))
            except HTTPError as error:
                body = error.read(500).decode("utf-8", "replace")
                if error.code in (401, 403, 404):
                    raise EndpointBroken(
                        f"{self.url} answers with {error.code}: {body}; check address, model and --key-env, then "
                        "run the same command again"
                    ) from None
                if error.code < 500 and error.code not in BUSY:
                    return Refused(f"{error.code}: {body}")
                self._wait(pause, f"answers with {error.code}: {body}")
            except (URLError, OSError, HTTPException) as error:
                self._wait(pause, f"cannot be reached: {getattr(error, 'reason', error)}")
        raise AssertionError("the last attempt raises")

    def _post(self, conversation: Sequence[Message], key: str | None) -> bytes:
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
