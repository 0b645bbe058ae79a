"""How often, how long and where the parts sft, dpo and reward of `vs_trl.py` run their sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from models import Models
from turns import Turns

Steps = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`steps` of each process of Foresail's beyond its first, `peer_steps` of TRL's."""

    peer_python: str
    rounds: int
    steps: int
    peer_steps: int
    seconds: float  # after which a process is killed
    models: Models
    turns: Turns
    weights: str = "float32"  # of TRL's model; its mixed precision on a GPU
    recompute: bool = False  # activations in the backward pass, on both sides
    float32: bool = False  # on both sides, also on a GPU

    def precision(self, device: str) -> Literal["float32", "bfloat16"]:
        """In which both sides compute; masters, moments and sums are float32 in any case."""
        return "bfloat16" if device == "cuda" and not self.float32 else "float32"


def run_rounds(
    sides: Sequence[str],
    plan: Plan,
    run_side: Callable[[str, int], Steps],
    describe: Callable[[str, Steps], str],
) -> dict[str, Steps]:
    """The steps of all rounds by side; of each process a line is printed when it ends."""
    seen: dict[str, Steps] = {side: [] for side in sides}

    def run(side: str, number: int) -> None:
        steps = run_side(side, number)
        seen[side] += steps
        print(describe(side, steps), flush=True)

    for number in range(plan.rounds):
        plan.turns.map(partial(run, number=number), sides)
    return seen


def counted(steps: Steps) -> Steps:
    """Without the first of each process, in which it warms up."""
    return [step for step in steps if step["step"] > 1]
