"""A local server with OpenAI's chat completions whose answers a test sets; it counts requests, and can fail.

with AnsweringServer(lambda question, count: f"{question} {count}") as server: Endpoint(url=server.url, model="m")
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar

from foresail.chat.http_server import JsonHandler, JsonServer


class AnsweringServer:
    """`answer` gets a question's last message and how often it was asked before; an int is a status of failure."""

    def __init__(self, answer: Callable[[str, int], str | int | None]) -> None:
        self.answer = answer
        self.asked: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.dead_from: int | None = None  # requests after which every further one is refused
        self.lock = threading.Lock()

        def chat(handler: JsonHandler) -> None:
            request = json.loads(handler.read_body(2**22))
            question = request["messages"][-1]["content"]
            with self.lock:
                if self.dead_from is not None and len(self.requests) >= self.dead_from:
                    status: str | int | None = 503
                else:
                    status = self.answer(question, self.asked[question])
                    self.asked[question] += 1
                    self.requests.append(request)
            if isinstance(status, int):
                handler.reply(status, {"error": "not now"})
            else:
                handler.reply(200, {"choices": [{"message": {"role": "assistant", "content": status}}]})

        class Handler(JsonHandler):
            timeout = 30.0
            routes: ClassVar = {"POST /v1/chat/completions": chat}

        self.server = JsonServer(Handler, port=0)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> AnsweringServer:
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
