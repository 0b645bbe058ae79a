"""Real CPU seconds of the host in a simulated step, without those of simulated engines and judges.

What is left is what a real run would take for the same requests: stream, controller, fleet and scheduler. What
messages to other machines cost, and looking at instances that have no news, is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class HostTime:
    """host = HostTime(); run(wait=host.left_out(clock.wait)); host.seconds()."""

    def __init__(self) -> None:
        self._start, self._outside = time.process_time(), 0.0

    def left_out(self, call: Callable[[], None]) -> Callable[[], None]:
        """The same call, whose time does not count."""

        def timed() -> None:
            start = time.process_time()
            call()
            self._outside += time.process_time() - start

        return timed

    def seconds(self) -> float:
        return time.process_time() - self._start - self._outside
