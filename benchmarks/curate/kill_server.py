"""A server with OpenAI's chat completions for step_kills.py: every call gets another answer.

python benchmarks/curate/kill_server.py --port 8123 --log calls.jsonl                      # answers of chance
python benchmarks/curate/kill_server.py --port 8123 --log calls.jsonl --replay answers.json

An answer begins with a number of its own in <think>, so that it can be found again where a run has noted it. It is
logged before it is sent. With --replay a question gets the answer of that file, and others get status 500.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAMES = re.compile(r'"(\w+_[0-9a-f]{6})": ')
QUESTION = re.compile(r"<question>\n(.*)\n</question>", re.DOTALL)
TEXT = re.compile(r"<text>\n(.*)\n</text>", re.DOTALL)
POLITE = ("Please tell me this. ", "I would like to know something. ", "A friend asked me the following. ")
SLOWEST = 0.03  # seconds before an answer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--replay", type=Path)
    args = parser.parse_args()
    replayed = json.loads(args.replay.read_text()) if args.replay else None
    log = os.open(args.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    class Handler(BaseHTTPRequestHandler):
        timeout = 30.0

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            content = self.rfile.read(size)
            if len(content) < size:  # who asked was killed
                return
            body = json.loads(content)
            question = json.dumps(body["messages"])
            if replayed is None:
                time.sleep(SLOWEST * random.random())
                answer = (
                    f"<think>{random.getrandbits(64)}</think>{answer_to(body['messages'][-1]['content'])}"
                )
            else:
                answer = replayed.get(question)
            if answer is None:
                self.send_error(500, "nobody has asked this before")
                return
            os.write(log, json.dumps({"question": question, "answer": answer}).encode() + b"\n")
            reply = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
            content = json.dumps(reply).encode()
            with suppress(ConnectionError):  # so it was since then
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *values: object) -> None:
            """Not on the terminal."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    Server(("127.0.0.1", args.port), Handler).serve_forever()


def answer_to(request: str) -> str:
    """By chance, of the form that is asked for: labels, a rewriting, a translation, or there and back."""
    if "Answer with one JSON object" in request:
        return labels_for(request.rpartition("Answer with one JSON object")[2])
    if match := QUESTION.search(request):
        return f"<rewritten>{random.choice(POLITE)}{match[1]}</rewritten>"
    match = TEXT.search(request)
    return f"<translation>{translated(match[1] if match else request)}</translation>"


def labels_for(form: str) -> str:
    labels: dict[str, int | str] = {}
    for name in NAMES.findall(form):
        labels[name] = random.choice("AB") if name.startswith("better_") else random.randint(1, 5)
    return json.dumps(labels)


def translated(text: str) -> str:
    """Of a question about pens in English or Indonesian; the last word is of chance."""
    red, blue, *_ = [*re.findall(r"\d+", text), "0", "0"]
    if "Sebuah" in text:
        thing = random.choice(("store", "shop"))
        return f"A {thing} sells {red} red pens and {blue} blue pens. How many pens does that {thing} sell in all?"
    end = random.choice(("toko itu", "toko tersebut"))
    return f"Sebuah toko menjual {red} pulpen merah dan {blue} pulpen biru. Berapa jumlah pulpen yang dijual {end}?"


if __name__ == "__main__":
    main()
