"""Search as a small HTTP server: one index for the episodes of many machines.

python -m foresail.agents.tools.search_server wiki.jsonl.gz --port 8600

POST /search {"query": "capital of France", "count": 3} -> {"passages": [{"title": "Paris", "text": "…"}, …]}
GET  /health -> {"passages": 6119}
"""

from __future__ import annotations

import argparse
import json
from http.server import ThreadingHTTPServer
from typing import Any

from foresail.agents.http_limits import BadLength, LimitedHandler
from foresail.agents.tools.search import MOST_PASSAGES, Finder, open_index

LONGEST_BODY = 1 << 16
SECONDS = 60.0  # that a client may take to send its request


class SearchServer(ThreadingHTTPServer):
    """A thread for each connection; `port` 0 takes a free one, which `server_port` tells."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, index: Finder, *, host: str = "127.0.0.1", port: int = 8600) -> None:
        self.index = index
        super().__init__((host, port), Handler)


class Handler(LimitedHandler):
    server: SearchServer
    timeout = SECONDS

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(200, {"passages": len(self.server.index.passages)})
        else:
            self.reply(404, {"error": "there are POST /search and GET /health"})

    def do_POST(self) -> None:
        try:
            query, count = read_request(self.read_body(LONGEST_BODY))
        except BadLength as error:
            self.reply(error.status, {"error": str(error)})
            return
        except ValueError as error:
            self.reply(400, {"error": str(error)})
            return
        if self.path != "/search":
            self.reply(404, {"error": "there are POST /search and GET /health"})
            return
        try:
            found = self.server.index.find(query, count)
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            self.reply(400, {"error": f"this query cannot be searched: {type(error).__name__}"})
            return
        self.reply(200, {"passages": [passage._asdict() for passage in found]})

    def reply(self, status: int, content: dict[str, Any]) -> None:
        self.send(status, "application/json", json.dumps(content).encode())


def read_request(body: bytes) -> tuple[str, int]:
    """read_request(b'{"query": "Paris"}') -> ("Paris", 3)."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        request = None
    query = request.get("query") if isinstance(request, dict) else None
    count = request.get("count", 3) if isinstance(request, dict) else None
    if not isinstance(query, str) or type(count) is not int or not 1 <= count <= MOST_PASSAGES:
        raise ValueError(f'a request is {{"query": "…", "count": 1 to {MOST_PASSAGES}}}')
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
    given = parser.parse_args()
    try:
        server = SearchServer(
            open_index(given.corpus, given.kind, given.model), host=given.host, port=given.port
        )
    except (ValueError, OSError) as error:
        raise SystemExit(f"{error}") from None
    print(f"{len(server.index.passages)} passages at http://{given.host}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
