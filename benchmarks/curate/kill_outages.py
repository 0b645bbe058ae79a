"""The server of step_kills.py: killed and started again at random moments, and what it has answered.

with UnsteadyServer(folder / "calls.jsonl", chance) as server:      # kill_server.py, on a port of its own
    …
    server.remember(out)                                            # after each kill
    answers, lost = server.noted_answers(out)                       # by question; raises if one went lost
    with server.replaying(answers): …                               # steady, and no answer is of chance
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

ANSWERS = "*.answers.jsonl"
SHORTEST_UP, LONGEST_UP, LONGEST_AWAY = 0.5, 8.0, 3.0  # seconds


class UnsteadyServer:
    def __init__(self, log: Path, chance: random.Random) -> None:
        self.log, self.chance = log, chance
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.outages = 0
        self.remembered: set[bytes] = set()  # lines of caches when a kill had come
        self.is_over = threading.Event()

    def __enter__(self) -> Self:
        self.log.write_bytes(b"")
        self.remembered.clear()
        self.is_over.clear()
        self.process = self.start()
        self.thread = threading.Thread(target=self.fail_often, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.steady()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        script = Path(__file__).parent / "kill_server.py"
        command = [sys.executable, str(script), "--port", str(self.port), "--log", str(self.log), *words]
        return subprocess.Popen(command)

    def fail_often(self) -> None:
        while not self.is_over.wait(self.chance.uniform(SHORTEST_UP, LONGEST_UP)):
            stop(self.process)
            self.outages += 1
            self.is_over.wait(self.chance.uniform(0, LONGEST_AWAY))
            self.process = self.start()

    def steady(self) -> None:
        """No server any more."""
        if not self.is_over.is_set():
            self.is_over.set()
            self.thread.join()
            stop(self.process)

    @contextmanager
    def replaying(self, answers: dict[str, str]) -> Iterator[None]:
        self.steady()
        file = self.log.with_name("replayed.json")
        file.write_text(json.dumps(answers))
        process = self.start("--replay", str(file))
        try:
            yield
        finally:
            stop(process)

    def remember(self, out: Path) -> None:
        """What has been noted must be there when the run has ended; the last line may be torn."""
        for file in out.rglob(ANSWERS):
            self.remembered.update(file.read_bytes().split(b"\n")[:-1])

    def noted_answers(self, out: Path) -> tuple[dict[str, str], int]:
        """Of each question the answer in a cache below `out`; how many answers went lost with those who had asked.

        A question that was asked once more though its answer had been noted is an error.
        """
        calls = [json.loads(line) for line in self.log.read_text().splitlines()]
        asked = {call["answer"]: call["question"] for call in calls}
        last = {call["question"]: call["answer"] for call in calls}
        lines = [line for file in out.rglob(ANSWERS) for line in file.read_bytes().splitlines()]
        assert self.remembered <= {*lines}, f"{len(self.remembered - {*lines})} noted answers went lost"
        rows = [json.loads(line) for line in lines]
        refused = [row["refused"] for row in rows if "refused" in row]
        assert not refused, f"a server that dies is no refusal: {refused[:3]}"
        noted = {asked[row["answer"]]: row["answer"] for row in rows}
        again = sum(last[question] != answer for question, answer in noted.items())
        assert not again, f"{again} questions were asked again though their answer had been noted"
        assert len(noted) == len(rows) == len(last), (len(noted), len(rows), len(last))
        return noted, len(calls) - len(rows)


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port: int = place.getsockname()[1]
        return port


def stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    time.sleep(0.01)
