"""Decides which groups a step launches, learns from and cancels, without a bias by length.

A group without a learning signal is replaced at its last verdict, by as many launches as the share of valid groups
requires. The step ends at the shortest prefix of launches that is all scored and has enough valid groups. Launch
order and validity decide, never length: no long answer is dropped because a short one ended sooner. Later launches
are cancelled.

Events in, decisions out: no torch, no clock, no engine. The loop of a step:

    while (closing := controller.closing()) is None:
        for _ in range(controller.next_launches()):
            …                                     # number it, tell the scheduler, controller.launched(group)
        …                                         # wait for something to end; when a group's verdicts are in:
        controller.scored(group, valid=…)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

ROUNDING = 1e-9  # 21 / 0.7 must give 30 launches despite rounding errors


@dataclass(frozen=True, kw_only=True)
class StepEnd:
    """The end of a step; all groups are in launch order.

    Of two required groups, 0 and 2 are valid, 1 is not; of the later ones 3 is valid, 4 is not, and 5 still runs:
    StepEnd(prefix=(0, 1, 2), chosen=(0, 2), surplus=(3,), cancelled=(5,), share=…)

    Only `prefix` may affect a run's state: which later groups ended in time depends on the machine.
    """

    prefix: tuple[int, ...]
    chosen: tuple[int, ...]
    surplus: tuple[int, ...]
    cancelled: tuple[int, ...]
    share: float  # of valid groups, as the next step's `share_before`


class Controller:
    """One step's launches.

    A step needs `num_groups` valid groups. `share_before` is the expected share of valid groups, and
    `weight_before`, by default `num_groups`, how many verdicts it counts for. A much smaller weight would launch
    far too many after the first few verdicts, which are often of short and easy problems. In a first step the share
    is 1.0, so it begins with `num_groups` launches.

    After `cap` launches the step ends with what there is, perhaps nothing (see `collect.explain`). At most
    `max_active` groups run at the same time.
    """

    def __init__(
        self,
        *,
        num_groups: int,
        cap: int,
        share_before: float = 1.0,
        weight_before: float | None = None,
        max_active: int | None = None,
    ) -> None:
        if num_groups < 1 or cap < 1:
            raise ValueError(f"a step needs num_groups and cap of 1 or more, not {num_groups} and {cap}")
        if not 0 < share_before <= 1:
            raise ValueError(
                f"share_before {share_before} is no share of groups; use one above 0 and up to 1"
            )
        self.num_groups, self.cap, self.share_before = num_groups, cap, share_before
        self.max_active = cap if max_active is None else max_active
        self.weight_before = num_groups if weight_before is None else weight_before
        if not self.weight_before > 0:
            raise ValueError(f"weight_before {weight_before} lets no estimate start; use a number above 0")
        self._order: list[int] = []
        self._valid: dict[int, bool | None] = {}  # None until it is scored
        self._num_scored = self._num_valid = 0
        self._prefix_length = 0
        self._chosen: list[int] = []
        self._closing: StepEnd | None = None

    @classmethod
    def for_all(cls, count: int, *, max_active: int | None = None) -> Self:
        """For validation: every group is used, and none is cancelled."""
        return cls(num_groups=count, cap=count, max_active=max_active)

    @property
    def num_active(self) -> int:
        """Groups that are launched but not scored."""
        return len(self._order) - self._num_scored

    @property
    def share(self) -> float:
        """The estimated share of valid groups."""
        return self._smooth(self._num_valid, self._num_scored)

    def next_launches(self) -> int:
        """How many groups to launch now, so that the running ones should suffice."""
        enough = launches_for(self.num_groups - self._num_valid, self.share)
        return max(0, min(min(enough, self.max_active) - self.num_active, self.cap - len(self._order)))

    def launched(self, group: int) -> None:
        assert group not in self._valid, f"group {group} is launched twice"
        assert not self._closes and len(self._order) < self.cap, f"group {group} is launched without need"
        self._order.append(group)
        self._valid[group] = None

    def scored(self, group: int, *, valid: bool) -> None:
        """Record a group's last verdict. It changes nothing after the step's end."""
        assert self._valid[group] is None, f"group {group} is scored twice"
        self._valid[group] = valid
        self._num_scored += 1
        self._num_valid += valid
        self._advance()

    def closing(self) -> StepEnd | None:
        """The step's end, or None while it is undecided."""
        if self._closing is None and self._closes:
            later = self._order[self._prefix_length :]
            self._closing = StepEnd(
                prefix=tuple(self._order[: self._prefix_length]),
                chosen=tuple(self._chosen),
                surplus=tuple(group for group in later if self._valid[group]),
                cancelled=tuple(group for group in later if self._valid[group] is None),
                share=self._smooth(len(self._chosen), self._prefix_length),
            )
        return self._closing

    @property
    def _closes(self) -> bool:
        return len(self._chosen) == self.num_groups or self._prefix_length == self.cap

    def _advance(self) -> None:
        """Move the prefix's end over scored groups; each group is passed once in a step."""
        while not self._closes and self._prefix_length < len(self._order):
            group = self._order[self._prefix_length]
            valid = self._valid[group]
            if valid is None:
                break
            self._prefix_length += 1
            if valid:
                self._chosen.append(group)

    def _smooth(self, valid: int, scored: int) -> float:
        return (valid + self.weight_before * self.share_before) / (scored + self.weight_before)


def launches_for(missing: int, share: float) -> int:
    """How many groups should give `missing` valid ones: launches_for(8, 0.5) -> 16; launches_for(0, 0.5) -> 0."""
    return max(0, math.ceil(missing / share - ROUNDING))
