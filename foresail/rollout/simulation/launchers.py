"""What the controller is compared with: other ways to say when groups are launched and when a step is over."""

from __future__ import annotations

from foresail.rollout.controller import Closing, Controller
from foresail.rollout.simulation.settings import Step


class Patient(Controller):
    """Continuous launches without early termination: what runs when enough are valid may end."""

    def closing(self) -> Closing | None:
        return super().closing() if self.num_active == 0 else None


class Rounds(Patient):
    """Naive dynamic sampling: as many as are wanted, all to their end, again until enough are valid."""

    def next_launches(self) -> int:
        return 0 if self.num_active else min(self.wanted, self.cap - len(self._order))


def build_controller(step: Step, wanted: int, share_before: float) -> Controller:
    if step.launches == "all":
        return Controller.for_all(wanted)
    build = Rounds if step.launches == "rounds" else Controller if step.early_termination else Patient
    return build(wanted=wanted, cap=wanted * step.launch_cap, share_before=share_before)
