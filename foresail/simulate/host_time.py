"""Measures the host's real CPU seconds in a simulated step, without simulated engines and judges.

This is the time of stream, controller, fleet and scheduler in a real run with the same requests, without messages
to other machines and polls without reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class HostTime:
    """host = HostTime(); run(wait=host.left_out(clock.wait)); host.seconds()."""

    def __init__(self) -> None:
        self._start, self._outside = time.process_time(), 0.0

    def left_out(self, call: Callable[[], None]) -> Callable[[], None]:
        """The same call, without counting its time."""

        def timed() -> None:
            start = time.process_time()
            call()
            self._outside += time.process_time() - start

        return timed

    def seconds(self) -> float:
        return time.process_time() - self._start - self._outside
