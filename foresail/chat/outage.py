"""What a server's users know of it together: whether it is away, and what it does not take.

outage.report(url, "cannot be reached: Connection refused", 4.0)
WARNING http://judge:8000/v1 cannot be reached: Connection refused; waiting for it, next attempt in 4 s
"""

from __future__ import annotations

import logging
import threading

REPORTED_FROM = 1.0  # seconds of a pause; shorter ones are not worth a line

log = logging.getLogger(__name__)


class Outage:
    """Many threads wait for one server; one of them says so, and again when its pause has doubled."""

    def __init__(self) -> None:
        self.answered = 0
        self.refuses_schemas = False
        self._reported = 0.0  # the longest pause of this outage that the log has
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._closed = False

    def begin(self) -> None:
        """Questions begin."""
        if not self._closed:
            self._over.clear()

    def give_up(self) -> None:
        """Whoever waits need not."""
        self._over.set()

    def close(self) -> None:
        self._closed = True
        self.give_up()

    def wait(self, pause: float) -> bool:
        """False: nobody waits any more."""
        return not self._over.wait(pause)

    def report(self, url: str, why: str, pause: float) -> None:
        with self._lock:
            if pause < REPORTED_FROM or pause < 2 * self._reported:
                return
            self._reported = pause
        log.warning("%s %s; waiting for it, next attempt in %.0f s", url, why, pause)

    def end(self, url: str) -> None:
        """It has answered."""
        with self._lock:
            self.answered += 1
            was_reported, self._reported = self._reported, 0.0
        if was_reported:
            log.warning("%s answers again", url)
