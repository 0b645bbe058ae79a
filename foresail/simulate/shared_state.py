"""What all simulated instances share: the time, what will become of requests, and how far each of them is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from foresail.rollout.plan import SampleSpec
from foresail.simulate.clock import VirtualClock


class Siblings:
    """How far the samples of each group are, as far as reported.

    What instances tell each other in a real run, by `learn`, all simulated ones read here.
    """

    def __init__(self) -> None:
        # group -> sample -> tokens; infinite when it has ended
        self._groups: dict[int, dict[int, float]] = {}

    def reported(self, spec: SampleSpec, generated: int, *, finished: bool) -> None:
        self._groups.setdefault(spec.group, {})[spec.sample] = math.inf if finished else generated

    def references(self, spec: SampleSpec, generated: int) -> int:
        """Siblings to draft from: those that have ended, and those at least as far as this one."""
        own = max(generated, 1)
        group = self._groups.get(spec.group, {})
        return sum(tokens >= own for sample, tokens in group.items() if sample != spec.sample)


@dataclass(frozen=True, kw_only=True)
class SharedState:
    """`length` tells how long the response to a request will be; `spent` holds seconds of engines by request."""

    clock: VirtualClock
    length: Callable[[SampleSpec], int]
    siblings: Siblings = field(default_factory=Siblings)
    spent: dict[str, float] = field(default_factory=dict)
