"""What all requests to a server share: whether it is down, for how long, and whether it takes schemas.

outage.report(url, "cannot be reached: Connection refused", 4.0)
WARNING http://judge:8000/v1 cannot be reached: Connection refused; waiting for it, next attempt in 4 s
"""

from __future__ import annotations

import logging
import threading

REPORTED_FROM = 1.0  # seconds of a pause; shorter ones are not worth a line

log = logging.getLogger(__name__)


class Outage:
    """Many threads wait for one server. One of them logs it, and again when its pause has doubled."""

    def __init__(self) -> None:
        self.answered = 0
        self.refuses_schemas = False
        self._reported = 0.0  # the longest pause of this outage that the log has
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._closed = False

    def begin(self) -> None:
        """A new batch of questions: they wait again."""
        if not self._closed:
            self._over.clear()

    def give_up(self) -> None:
        """End all waits."""
        self._over.set()

    def close(self) -> None:
        self._closed = True
        self.give_up()

    def wait(self, pause: float) -> bool:
        """False if the waits were ended."""
        return not self._over.wait(pause)

    def report(self, url: str, why: str, pause: float) -> None:
        with self._lock:
            if pause < REPORTED_FROM or pause < 2 * self._reported:
                return
            self._reported = pause
        log.warning("%s %s; waiting for it, next attempt in %.0f s", url, why, pause)

    def end(self, url: str) -> None:
        """The server has answered."""
        with self._lock:
            self.answered += 1
            was_reported, self._reported = self._reported, 0.0
        if was_reported:
            log.warning("%s answers again", url)
