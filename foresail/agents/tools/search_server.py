"""A small HTTP search server: one index for the episodes of many machines.

python -m foresail.agents.tools.search_server wiki.jsonl.gz --port 8600

POST /search {"query": "capital of France", "count": 3} -> {"passages": [{"title": "Paris", "text": "…"}, …]}
GET  /health -> {"passages": 6119}
"""

from __future__ import annotations

import argparse
import json
from typing import ClassVar

from foresail.agents.tools.search import MAX_PASSAGES, Finder, open_index
from foresail.chat.errors import Refusal
from foresail.chat.http_server import JsonHandler, JsonServer

LONGEST_BODY = 1 << 16
SECONDS = 60.0  # that a client may take to send its request


class SearchServer(JsonServer):
    def __init__(self, index: Finder, *, host: str = "127.0.0.1", port: int = 8600) -> None:
        self.index = index
        super().__init__(SearchHandler, host=host, port=port)


class SearchHandler(JsonHandler):
    server: SearchServer
    timeout = SECONDS

    def health(self) -> None:
        self.reply(200, {"passages": len(self.server.index.passages)})

    def search(self) -> None:
        query, count = read_request(self.read_body(LONGEST_BODY))
        try:
            passages = self.server.index.find(query, count)
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            raise Refusal(f"this query cannot be searched: {type(error).__name__}") from None
        self.reply(200, {"passages": [passage._asdict() for passage in passages]})

    routes: ClassVar = {"POST /search": search, "GET /health": health}

    def refuse(self, refusal: Refusal) -> None:
        self.reply(refusal.status, {"error": refusal.message})


def read_request(body: bytes) -> tuple[str, int]:
    """read_request(b'{"query": "Paris"}') -> ("Paris", 3)."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        request = None
    query = request.get("query") if isinstance(request, dict) else None
    count = request.get("count", 3) if isinstance(request, dict) else None
    if not isinstance(query, str) or type(count) is not int or not 1 <= count <= MAX_PASSAGES:
        raise Refusal(f'a request is {{"query": "…", "count": 1 to {MAX_PASSAGES}}}')
    return query, count


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve search over a corpus of passages.")
    parser.add_argument("corpus", help='JSONL with "title" and "text", also .gz')
    parser.add_argument(
        "--host", default="127.0.0.1", help="0.0.0.0 for other machines; there is no password"
    )
    parser.add_argument("--port", type=int, default=8600)
    parser.add_argument("--kind", choices=("bm25", "dense"), default="bm25", help="by words, or by meaning")
    parser.add_argument("--model", default="", help="dense: folder of a sentence embedder")
    arguments = parser.parse_args()
    try:
        server = SearchServer(
            open_index(arguments.corpus, arguments.kind, arguments.model),
            host=arguments.host,
            port=arguments.port,
        )
    except (ValueError, OSError) as error:
        raise SystemExit(f"{error}") from None
    print(
        f"{len(server.index.passages)} passages at http://{arguments.host}:{server.server_port}", flush=True
    )
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
