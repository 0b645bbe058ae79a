"""Phases inside a step: what they are called, how far they are, and what that says of the time left."""

from __future__ import annotations

from concurrent.futures import Future
from io import StringIO

from rich.console import Console

from foresail.runlog.display import QUIET, Display
from foresail.runlog.phase import Phase


def test_a_phase_in_words() -> None:
    assert str(Phase("loading the model")) == "loading the model"
    phase = Phase("rollout", 2)
    assert str(phase) == "rollout 0/2"
    verdicts: list[Future[str]] = [Future(), Future(), Future()]
    for verdict in verdicts[:2]:
        phase.advance(verdict)
    assert str(phase) == "grading 0/2"
    verdicts[0].set_result("correct")
    assert str(phase) == "grading 1/2"
    verdicts[1].set_result("wrong")
    assert str(phase) == "rollout 2/2"
    phase.advance()  # dynamic sampling takes more than were wanted
    assert str(phase) == "rollout 3/3"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def open_display(clock: Clock) -> tuple[Display, StringIO]:
    out = StringIO()
    return Display("rl", total=4, console=Console(file=out), clock=clock), out


def test_the_first_step_has_a_time_left() -> None:
    clock = Clock()
    display, _ = open_display(clock)
    display.begin("loading the model")
    clock.now = 100.0
    assert display.time_left() == "?"
    display.begin("rollout", 4, span=(0.0, 0.5))
    clock.now = 110.0
    display.advance()
    # 10 s for an eighth of a step: 80 s a step, 4 - 1/8 of them left
    assert display.time_left() == "about 5:10"
    clock.now = 180.0
    display.update(1, {})
    assert display.time_left() == "4:00", "loading was no step"


def test_a_silent_piped_run_says_what_it_is_at() -> None:
    clock = Clock()
    display, out = open_display(clock)
    display.begin("rollout", 512, span=(0.0, 0.5))
    for _ in range(256):
        display.advance()
    display.print_phase_if_due()
    assert out.getvalue() == ""
    clock.now = QUIET
    display.print_phase_if_due()
    display.print_phase_if_due()
    assert out.getvalue() == "rl 0/4 rollout 256/512 left about 7:30\n"


def test_somebody_who_asks_for_the_end_is_told_what_is_awaited() -> None:
    clock = Clock()
    display, _ = open_display(clock)
    display.begin("loading the model")
    assert display.describe_stop() == "what is under way (loading the model) ends first"
    display.begin("rollout", 4, span=(0.0, 0.5))
    clock.now = 10.0
    display.advance()
    assert display.describe_stop() == "step 1 (rollout 1/4) is finished and saved first, about 1:10"
    display.update(1, {})
    clock.now = 14.0
    display.begin("update")
    assert display.describe_stop() == "step 2 (update) is finished and saved first, about 0:06"
