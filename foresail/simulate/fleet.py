"""A fleet that polls only the instances with reports, so that a thousand instances are cheap.

A real fleet polls all instances and gets several reports. On a virtual clock every report is read immediately, so
each poll would find one. Decisions are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from foresail.rollout.event_log import EventLog
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import Instance
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.policies import Policy


class AnnouncedFleet(Fleet):
    """Polls the instances in `news`, in the fleet's order; no simulated instance is ever lost."""

    def __init__(
        self,
        instances: Sequence[Instance],
        policy: Policy,
        pool: KVPool,
        news: set[str],
        *,
        chunk_tokens: int | None,
        event_log: EventLog,
    ) -> None:
        super().__init__(instances, policy, pool, chunk_tokens=chunk_tokens, event_log=event_log)
        self._news = news
        self._places = {name: place for place, name in enumerate(self.instances)}

    @property
    def only_waits(self) -> bool:
        """Nothing to do: simulated instances advance with the clock."""
        return True

    def _poll_order(self) -> Sequence[str]:
        names = sorted(self._news, key=self._places.__getitem__)
        self._news.clear()
        return names
