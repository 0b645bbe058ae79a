"""Asks a server with OpenAI's chat completions, several requests at a time.

endpoint = Endpoint(url="http://judge:8000/v1", model="judge-7b", parallel=16)
endpoint.answer([conversation, …]) -> ["{…}", Refused("…"), …]      # in the order of the questions

A server that does not answer is waited for, and the log says so; one that stays away raises `EndpointBroken`.
"""

from __future__ import annotations

import hashlib
import json
import math
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

from foresail.chat.outage import Outage
from foresail.records import Message

LONGEST_PAUSE = 60.0
BUSY = (408, 409, 425, 429)
CLOSED = (401, 403, 404)
# of a question, where others are answered; so are 403 of a filter before the server, and no reply at all
ITS_OWN_FAULT = (500, 502, 504)
PLAIN, PLAIN_SECONDS = (Message(role="user", content="Say yes."),), 60.0
MOST_BYTES = 2**24  # of a reply
SCHEMA = "response_format"
LIKELIEST = 20  # tokens whose probabilities a server gives at most
CHOOSING = {"max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": LIKELIEST}
CUT = "the answer had not ended at max_new_tokens; raise it"
TRIES = 4  # of a question on which a server fails that answers others


@dataclass(frozen=True, slots=True)
class Refused:
    """This question is not answered; others may be."""

    detail: str


class BrokenReply(HTTPException):
    """The reply is no JSON: it broke off where the server died, or something else than the server replied."""


class EndpointBroken(OSError):
    """The server answers no question; the message says why, and that the same command goes on."""


Read = Callable[[bytes], str | Refused]
Note = Callable[[int, str | Refused], None]


def no_note(number: int, answer: str | Refused) -> None:
    """For callers that need all answers at once."""


def growing_pauses(seconds: float) -> tuple[float, ...]:
    """growing_pauses(10) -> (0.5, 1.0, 2.0, 4.0, 2.5): seconds before each further attempt."""
    pauses: list[float] = []
    while (left := seconds - sum(pauses)) > 0:
        pauses.append(min(0.5 * 2 ** len(pauses), LONGEST_PAUSE, left))
    return tuple(pauses)


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

    def __call__(self, *arguments: Any, **options: Any) -> list[str | Refused]:
        return self.answer(*arguments, **options)

    def stop(self) -> None:
        """For good: ends the waits of all threads."""
        self.outage.close()

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        keys: Sequence[str] | None = None,
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> list[str | Refused]:
        """With keys, each question has a seed of its own. A server that does not take a schema is asked without;
        one that gives no probabilities of tokens refuses choices.
        """

        def ask(number: int) -> str | Refused:
            key = keys[number] if keys is not None else None
            if choices is None:
                form = schema_form(schemas[number]) if schemas is not None else {}
                answer = self._ask(conversations[number], key, form, read_reply)
            else:
                answer = self._ask(conversations[number], key, CHOOSING, partial(read_choice, choices))
            note(number, answer)
            return answer

        self.outage.begin()
        with ThreadPoolExecutor(self.parallel) as pool:
            try:
                return [*pool.map(ask, range(len(conversations)))]
            except BaseException:  # Ctrl-C, or the server is given up
                self.outage.give_up()
                raise

    def _ask(
        self, conversation: Sequence[Message], key: str | None, form: Mapping[str, Any], read: Read
    ) -> str | Refused:
        """`form` is what the request has more than others."""
        own_faults = 0
        for pause in (*self.pauses, None):
            answered_before = self.outage.answered
            try:
                if SCHEMA in form and self.outage.refuses_schemas:
                    form = {}
                reply = self._post(conversation, key, form)
            except HTTPError as error:
                why = f"answers with {error.code}: {error.read(500).decode('utf-8', 'replace')}"
                if error.code < 500 and error.code not in (*BUSY, *CLOSED):
                    if SCHEMA not in form:
                        return Refused(why.removeprefix("answers with "))
                    return self._ask_plainly(conversation, key, read)
                if error.code in CLOSED and not self._answers_others(answered_before):
                    raise EndpointBroken(
                        f"{self.url} {why}; check address, model and key, then run the same command again"
                    ) from None
                may_be_its_own = error.code in (*CLOSED, *ITS_OWN_FAULT) and SCHEMA not in form
                if error.code in ITS_OWN_FAULT:
                    form = {} if SCHEMA in form else form  # some fail on it, and do not say so
            except BrokenReply as error:
                why, may_be_its_own = str(error), True
            except (URLError, OSError, HTTPException) as error:
                why, may_be_its_own = f"cannot be reached: {getattr(error, 'reason', error)}", True
            else:
                self.outage.end(self.url)
                return read(reply)
            if may_be_its_own and self._answers_others(answered_before):
                own_faults += 1
                if own_faults >= TRIES:
                    return Refused(f"the server {why}, and answers other questions")
            self._wait(pause, why)
        raise AssertionError("the last attempt raises")

    def _answers_others(self, answered_before: int) -> bool:
        """Whether a question failed by what it says: others were answered since, or a plain one is now."""
        if self.outage.answered > answered_before:
            return True
        try:
            self._post(PLAIN, None, {"max_tokens": 16}, seconds=min(self.seconds, PLAIN_SECONDS))
        except HTTPError as error:
            return error.code < 500 and error.code not in (*BUSY, *CLOSED)
        except (URLError, OSError, HTTPException):
            return False
        return True

    def _ask_plainly(self, conversation: Sequence[Message], key: str | None, read: Read) -> str | Refused:
        """Without the schema; if that is taken, it is what the server refuses."""
        answer = self._ask(conversation, key, {}, read)
        if not isinstance(answer, Refused):
            self.outage.refuses_schemas = True
        return answer

    def _post(
        self,
        conversation: Sequence[Message],
        key: str | None,
        form: Mapping[str, Any],
        seconds: float | None = None,
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
        body |= form
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = f"{self.url.rstrip('/')}/chat/completions"
        request = urllib.request.Request(address, data=json.dumps(body).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=seconds or self.seconds) as answer:
            reply = bytes(answer.read(MOST_BYTES))
        try:
            json.loads(reply)
        except (ValueError, RecursionError):
            raise BrokenReply(f"replies with what is no JSON: {reply[:80]!r}") from None
        return reply

    def _wait(self, pause: float | None, why: str) -> None:
        if pause is None:
            raise EndpointBroken(
                f"{self.url} {why}; start it, then run the same command again: it goes on (a training "
                "run: foresail resume)"
            )
        self.outage.report(self.url, why, pause)
        if not self.outage.wait(pause):
            raise EndpointBroken(f"{self.url} {why}; it is not waited for any more")


def schema_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": "answer", "strict": True, "schema": schema}
    return {SCHEMA: {"type": "json_schema", "json_schema": named}}


def seed_of(seed: int, key: str) -> int:
    """31 bits: what every server takes."""
    digest = hashlib.blake2b(f"{seed}\x1f{key}".encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1


def read_reply(body: bytes) -> str | Refused:
    try:
        choice = json.loads(body)["choices"][0]
        content: Any = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Refused(f"the reply is none of OpenAI's: {body[:80]!r}")
    if choice.get("finish_reason") == "length":
        return Refused(CUT)
    return content if isinstance(content, str) else Refused("the reply has no text")


def read_choice(choices: Sequence[str], body: bytes) -> str | Refused:
    """How likely each choice is, as the first token of the answer: "[0.93, 0.07]"."""
    try:
        first = json.loads(body)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        seen = [(str(entry["token"]).strip(), float(entry["logprob"])) for entry in first]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Refused("the reply has no probabilities of tokens (top_logprobs)")
    logprobs = [
        [logprob for token, logprob in seen if token == choice and logprob == logprob] for choice in choices
    ]
    if not any(logprobs):
        tokens = ", ".join(repr(token) for token, _ in seen[:3])
        return Refused(f"the answer begins with none of {', '.join(choices)}, but {tokens or 'nothing'}")
    return shares([logsumexp(own) for own in logprobs])


def logsumexp(logprobs: Sequence[float]) -> float:
    """Of " A" and "A" together; a choice that is not there is as unlikely as can be."""
    return math.log(sum(map(math.exp, logprobs))) if logprobs else -math.inf


def shares(logprobs: Sequence[float]) -> str:
    """shares([-1.0, -1.0]) -> "[0.5, 0.5]": they sum to 1, whatever else the answer could begin with."""
    highest = max(logprobs)
    weights = [math.exp(logprob - highest) for logprob in logprobs]
    return json.dumps([round(weight / sum(weights), 6) for weight in weights])
