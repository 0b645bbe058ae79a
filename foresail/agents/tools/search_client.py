"""The HTTP client of a search server (`search_server`); raises EnvironmentBroken if it cannot be reached."""

from __future__ import annotations

import json
import time
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.tools.corpus import CorpusPassage

SECONDS = 60.0
PAUSES = (0.1, 0.5, 2.0)  # seconds before each further attempt: a server may be starting


class SearchClient:
    """`SearchClient("http://search:8600").find("capital of France", 3)`."""

    def __init__(self, url: str, *, pauses: tuple[float, ...] = PAUSES) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the url of a search server begins with http://, not {url!r}")
        self.url = url.rstrip("/") + "/search"
        self.pauses = pauses

    def find(self, query: str, count: int) -> list[CorpusPassage]:
        for pause in (*self.pauses, None):
            try:
                return read_answer(self._ask(query, count))
            except HTTPError as error:
                if error.code < 500:
                    raise ValueError(
                        f"the search server refuses: {error.read(500).decode('utf-8', 'replace')}"
                    ) from None
                self._wait(pause, f"answers with {error.code}")
            except (URLError, OSError, HTTPException) as error:
                self._wait(pause, f"cannot be reached: {getattr(error, 'reason', error)}")
        raise AssertionError("the last attempt raises")

    def _ask(self, query: str, count: int) -> bytes:
        body = json.dumps({"query": query, "count": count}).encode()
        request = urllib.request.Request(self.url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return bytes(answer.read())

    def _wait(self, pause: float | None, why: str) -> None:
        if pause is None:
            raise EnvironmentBroken(f"the search server {self.url} {why}")
        time.sleep(pause)


def read_answer(body: bytes) -> list[CorpusPassage]:
    try:
        rows: Any = json.loads(body)["passages"]
        return [CorpusPassage(str(row["title"]), str(row["text"])) for row in rows]
    except (ValueError, TypeError, KeyError):
        raise EnvironmentBroken(
            f"the search server answers what is no list of passages: {body[:80]!r}"
        ) from None
