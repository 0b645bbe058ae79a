"""What all simulated instances share: the time, what will become of requests, and how far each of them is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from foresail.rollout.plan import Ask
from foresail.rollout.simulation.clock import VirtualClock


class Siblings:
    """How far the samples of each group are, as far as reported.

    What instances tell each other in a real run, by `learn`, all simulated ones read here.
    """

    def __init__(self) -> None:
        self._groups: dict[
            int, dict[int, float]
        ] = {}  # group -> sample -> tokens; infinite when it has ended

    def reported(self, ask: Ask, generated: int, *, finished: bool) -> None:
        self._groups.setdefault(ask.group, {})[ask.sample] = math.inf if finished else generated

    def references(self, ask: Ask, generated: int) -> int:
        """Siblings to draft from: those that have ended, and those at least as far as this one."""
        own = max(generated, 1)
        group = self._groups.get(ask.group, {})
        return sum(tokens >= own for sample, tokens in group.items() if sample != ask.sample)


@dataclass(frozen=True, kw_only=True)
class World:
    """`length` tells how long the response to a request will be; `spent` holds seconds of engines by request."""

    clock: VirtualClock
    length: Callable[[Ask], int]
    siblings: Siblings = field(default_factory=Siblings)
    spent: dict[str, float] = field(default_factory=dict)
