"""When a simulated step launches groups and when it is over: the controller, and what it is compared with."""

from __future__ import annotations

from typing import Protocol

from foresail.rollout.controller import Closing, Controller, Outcome
from foresail.rollout.simulation.settings import Step


class Launcher(Protocol):
    """What the controller is to a step."""

    def next_launches(self) -> int: ...

    def launched(self, group: int) -> None: ...

    def scored(self, group: int, outcome: Outcome) -> None: ...

    def closing(self) -> Closing | None: ...


class Patient(Controller):
    """Continuous launches without early termination: what runs when enough are valid may end."""

    def closing(self) -> Closing | None:
        return super().closing() if self.num_active == 0 else None


class Rounds:
    """Naive dynamic sampling: as many as are wanted, all to their end, again until enough are valid."""

    def __init__(self, *, wanted: int, cap: int) -> None:
        self._wanted, self._cap = wanted, cap
        self._launched: list[int] = []
        self._valid: dict[int, bool] = {}

    def next_launches(self) -> int:
        if len(self._valid) < len(self._launched):
            return 0
        return min(self._wanted, self._cap - len(self._launched))

    def launched(self, group: int) -> None:
        self._launched.append(group)

    def scored(self, group: int, outcome: Outcome) -> None:
        self._valid[group] = outcome.valid

    def closing(self) -> Closing | None:
        valid = [group for group in self._launched if self._valid.get(group)]
        over = len(valid) >= self._wanted or len(self._valid) == self._cap
        if not over or len(self._valid) < len(self._launched):
            return None
        return Closing(
            prefix=tuple(self._launched),
            chosen=tuple(valid[: self._wanted]),
            surplus=tuple(valid[self._wanted :]),
            cancelled=(),
            share=max(len(valid), 1) / len(self._launched),
        )


def build_launcher(step: Step, wanted: int, share_before: float) -> Launcher:
    if step.launches == "all":
        return Controller.for_all(wanted)
    if step.launches == "rounds":
        return Rounds(wanted=wanted, cap=wanted * step.launch_cap)
    build = Controller if step.early_termination else Patient
    return build(wanted=wanted, cap=wanted * step.launch_cap, share_before=share_before)
